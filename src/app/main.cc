#include "app/commands.h"

int main(int argc, char** argv) { return reelway::app::run(argc, argv); }
