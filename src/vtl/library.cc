#include "vtl/library.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rng.h"
#include "vtl/changer_model.h"
#include "vtl/model_device.h"

namespace reelway::vtl {

struct Library::State {
  Options options;
  File lock;
  Faults faults;
  std::vector<std::unique_ptr<DriveModel>> drive_models;
  std::unique_ptr<ChangerModel> changer_model;
  std::vector<std::unique_ptr<ModelDevice>> drives;
  std::unique_ptr<ModelDevice> changer;

  std::unique_ptr<Pacer> make_pacer() const {
    async::Timer* timer = options.clock == ClockMode::lto9 ? options.timer : nullptr;
    return std::make_unique<Pacer>(media::personality(options.generation), timer, options.time_scale);
  }
  void make_drives();
  void make_changer(Shelf shelf);
};

namespace {

base::Result<void> check(const Options& options) {
  const auto refuse = [](std::string why) {
    return base::fail(base::Code::invalid_argument, std::move(why));
  };
  if (options.directory.empty()) return refuse("a virtual library needs a folder");
  if (options.drives == 0) return refuse("a virtual library needs a drive");
  if (!(options.capacity_scale > 0 && options.capacity_scale <= 1))
    return refuse("capacity scale is over 0, up to 1");
  if (!(options.time_scale > 0)) return refuse("time scale is over 0");
  if (options.clock == ClockMode::lto9 && options.timer == nullptr)
    return refuse("the lto9 clock needs a timer");
  return {};
}

}  // namespace

void Library::State::make_drives() {
  for (std::uint32_t index = 0; index < options.drives; ++index) {
    drive_models.push_back(std::make_unique<DriveModel>(index, options.generation));
    DriveModel* model = drive_models.back().get();
    ModelDevice::Parts parts{
        .name = fmt::format("vtl:drive{}", index),
        .id = DeviceId::drive(index),
        .run = [model](const scsi::Command& command, double now_s) { return model->execute(command, now_s); },
        .faults = &faults,
        .inline_io = options.inline_io};
    drives.push_back(std::make_unique<ModelDevice>(std::move(parts), make_pacer()));
  }
}

void Library::State::make_changer(Shelf shelf) {
  std::vector<DriveModel*> models;
  for (const auto& model : drive_models) models.push_back(model.get());
  ChangerOptions changer_options{
      .directory = options.directory,
      .cartridge = {.partition = {.sync = options.sync, .pattern = options.payload == Payload::pattern},
                    .generation = options.generation,
                    .capacity_scale = options.capacity_scale},
      .generation = options.generation,
      .media_optimisation = options.media_optimisation,
      .waits = options.clock == ClockMode::lto9,
      .seed = options.seed};
  changer_model =
      std::make_unique<ChangerModel>(std::move(changer_options), std::move(shelf), std::move(models));
  const auto run = [this](const scsi::Command& command, double now_s) {
    Outcome outcome = changer_model->execute(command, now_s);
    const std::vector<double> loads = changer_model->take_load_seconds();
    for (std::size_t i = 0; i < loads.size(); ++i) drives[i]->pacer().add_load(loads[i]);
    return outcome;
  };
  ModelDevice::Parts parts{.name = "vtl:changer",
                           .id = DeviceId::changer(),
                           .run = run,
                           .faults = &faults,
                           .inline_io = options.inline_io};
  changer = std::make_unique<ModelDevice>(std::move(parts), make_pacer());
}

base::Result<std::unique_ptr<Library>> Library::open(Options options) {
  TRY_VOID(check(options));
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error) return base::from_errno(error.value(), "create " + options.directory.string());
  auto state = std::make_unique<State>();
  TRY(state->lock, File::open(options.directory / "lock"));
  if (!state->lock.try_lock()) {
    return base::fail(base::Code::busy, options.directory.string() + " is open in another process",
                      base::Scope::library);
  }
  state->options = std::move(options);
  const Options& chosen = state->options;
  TRY(Shelf shelf,
      Shelf::open(chosen.directory / "library", {.drives = chosen.drives,
                                                 .slots = std::max(chosen.slots, chosen.cartridges),
                                                 .mail_slots = chosen.mail_slots,
                                                 .sync = chosen.sync}));
  state->make_drives();
  state->make_changer(std::move(shelf));
  TRY_VOID(state->changer_model->stock(chosen.cartridges));
  TRY_VOID(state->changer_model->refill_drives());
  return std::unique_ptr<Library>(new Library(std::move(state)));
}

Library::Library(std::unique_ptr<State> state) : state_(std::move(state)) {}
Library::~Library() = default;

scsi::Device& Library::changer() { return *state_->changer; }
scsi::Device& Library::drive(std::uint32_t index) { return *state_->drives.at(index); }
std::uint32_t Library::drive_count() const { return static_cast<std::uint32_t>(state_->drives.size()); }
Seconds Library::changer_seconds() const { return state_->changer->pacer().seconds(); }
Seconds Library::drive_seconds(std::uint32_t index) const {
  return state_->drives.at(index)->pacer().seconds();
}

double Library::modelled_seconds() const {
  double sum = 0;
  for (const auto& drive : state_->drives) sum += drive->pacer().seconds().total();
  return sum;
}

Faults& Library::faults() { return state_->faults; }

base::Result<void> Library::power_cut(std::uint64_t seed) {
  base::SeededRng rng(seed);
  return state_->changer_model->lose_power(rng);
}

base::Result<void> Library::flip_bit(std::string_view barcode, std::uint8_t partition, std::uint64_t block) {
  TRY(const auto cartridge, state_->changer_model->cartridge(barcode));
  if (partition >= cartridge->partition_count() || block >= cartridge->partition(partition).count()) {
    return base::fail(base::Code::not_found,
                      fmt::format("{} has no block {} in partition {}", barcode, block, partition));
  }
  return cartridge->partition(partition).flip_bit(block);
}

base::Result<void> Library::take_out(std::string_view barcode) {
  return state_->changer_model->take_out(barcode);
}
base::Result<void> Library::put_in(std::string_view barcode) {
  return state_->changer_model->put_in(barcode);
}

base::Result<void> Library::set_write_protect(std::string_view barcode, bool on) {
  TRY(const auto cartridge, state_->changer_model->cartridge(barcode));
  return cartridge->set_write_protected(on);
}

std::vector<std::string> Library::barcodes() const { return state_->changer_model->barcodes(); }

std::filesystem::path Library::cartridge_folder(std::string_view barcode) const {
  return state_->options.directory / barcode;
}

}  // namespace reelway::vtl
