#include "vtl/drive_model.h"
#include "vtl/test_folder.h"

// Any command with any parameters, on a drive with a cartridge in it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reelway;
  static const vtl::ScratchFolder folder;
  static vtl::DriveModel drive(0, media::Generation::lto9);
  if (drive.empty()) {
    auto cartridge = vtl::Cartridge::open(folder.path(), "FUZZ01L9",
                                          {.partition = {.sync = false}, .capacity_scale = 1e-6});
    drive.insert(std::shared_ptr(std::move(*cartridge)), 0);
  }
  static std::byte memory[1 << 16];
  scsi::Command command;
  if (size < command.cdb.bytes.size()) return 0;
  std::copy_n(data, command.cdb.bytes.size(), command.cdb.bytes.begin());
  command.cdb.bytes[4] &= 0x3f;  // few filemarks at a time
  if (command.cdb.bytes[0] == 0x10) command.cdb.bytes[2] = command.cdb.bytes[3] = 0;
  if (command.cdb.bytes[0] == 0x80) command.cdb.bytes[12] = command.cdb.bytes[13] = 0;
  command.data_out = std::as_bytes(std::span(data, size)).subspan(command.cdb.bytes.size());
  command.data_in = memory;
  (void)drive.execute(command, 0);
  return 0;
}
