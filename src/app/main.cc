#include "app/commands.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// libfabric keeps a few of its own descriptions until the process ends.
extern "C" const char* __lsan_default_suppressions();  // NOLINT
extern "C" const char* __lsan_default_suppressions() { return "leak:libfabric.so"; }
#endif
#endif

int main(int argc, char** argv) { return reelway::app::run(argc, argv); }
