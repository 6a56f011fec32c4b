// SPDX-License-Identifier: Apache-2.0
// Measures setting five attributes of all VFs of a netdevsim port, for the benchmarks
// configure-1000 and configure-1000-bare. In the emulated host:
//   configure_vfs execute|perform NETDEV VFS ROUND REPEATS
//       prints as JSON the medians of REPEATS rounds numbered from ROUND on: `seconds` in total,
//       which include `looks`, execute's observations of the host before and after, and
//       `read_back`, from perform()'s first read of the VFs to its end, which reads and compares.
//       `net` excludes those two. All rounds run in one process, as in a PF's worker: the PF stays
//       open from the first round on, and an emulator is slow where code runs for the first time.
//   configure_vfs check NETDEV VFS ROUND
//       exits with 1 unless every VF has that round's values, whichever program ran it.
#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "tests/fakes/fake_hypervisor.hpp"
#include "tests/fakes/fake_kernel.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/engine/execute.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/netlink/vf.hpp"

using vfmgr::Deadline;
using vfmgr::NlSocket;
using ReadVfs = vfmgr::Result<vfmgr::VfSettings>(NlSocket&, std::string const&, int, Deadline);

// The linker replaces the first by the second (--wrap), which records when the read began.
ReadVfs really_read asm("__real_" READ_VF_SETTINGS);
ReadVfs timed_read asm("__wrap_" READ_VF_SETTINGS);

namespace {

using namespace vfmgr;
using Steady = std::chrono::steady_clock;

std::optional<Steady::time_point> reading_began;

constexpr std::chrono::minutes patience{1};
PciAddress const pf{0, 1, 0, 0};

struct Bench {
    std::string netdev;
    std::uint16_t vfs = 0;
    std::uint8_t round = 0;  // each round changes every value that it can
};

struct Took {
    double seconds = 0;
    double looks = 0;
    double read_back = 0;
    [[nodiscard]] double net() const { return seconds - looks - read_back; }
};

[[noreturn]] void give_up(std::string const& why) {
    fmt::print(stderr, "configure_vfs: {}\n", why);
    std::exit(1);
}

double seconds_since(Steady::time_point began) {
    return std::chrono::duration<double>(Steady::now() - began).count();
}

MacAddress mac_of(Bench const& bench, std::uint16_t vf) {
    return {{2, bench.round, 0, 0, static_cast<std::uint8_t>(vf / 256),
             static_cast<std::uint8_t>(vf % 256)}};
}

ConfigureVfs step_of(Bench const& bench) {
    bool const even = bench.round % 2 == 0;
    ConfigureVfs step{pf, {}, {}};
    for (std::uint16_t vf = 0; vf < bench.vfs; ++vf) {
        VfSpec settings;
        settings.mac = mac_of(bench, vf);
        settings.vlan =
            Vlan{static_cast<std::uint16_t>(100 + bench.round % 2), 0, VlanProtocol::dot1q};
        settings.spoofchk = even;
        settings.trust = even;
        settings.query_rss = even;
        step.changes.push_back({vf, settings});
    }
    return step;
}

// --- the result of either program ---

VfSettings read_all(Bench const& bench) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    auto const ifindex = static_cast<int>(::if_nametoindex(bench.netdev.c_str()));
    auto settings = read_vf_settings(socket, bench.netdev, ifindex, Steady::now() + patience);
    if (!settings) give_up(settings.error().detail);
    return std::move(*settings);
}

void check(Bench const& bench) {
    auto const settings = read_all(bench);
    for (auto const& [index, expected] : step_of(bench).changes) {
        auto const found = settings.find(index);
        if (found == settings.end() || overlay(found->second, expected) != found->second)
            give_up(fmt::format("VF {} is not as it was set", index));
    }
}

// --- vfmgr ---

// netdevsim is no PCI device, so a sysfs of this program maps the PF to its network device.
LinuxKernelRoots roots_in(test::TemporaryFolder const& folder, Bench const& bench) {
    namespace fs = std::filesystem;
    auto const device = folder.path() / "bus/pci/devices" / to_string(pf);
    fs::create_directories(device / "net" / bench.netdev);
    std::ofstream(device / "net" / bench.netdev / "dev_port") << "0\n";
    std::ofstream(device / "net" / bench.netdev / "uevent") << fmt::format(
        "INTERFACE={}\nIFINDEX={}\n", bench.netdev, ::if_nametoindex(bench.netdev.c_str()));
    std::ofstream(device / "sriov_totalvfs") << bench.vfs << "\n";
    std::ofstream(device / "vendor") << "0x15b3\n";
    std::ofstream(device / "device") << "0x101d\n";
    for (std::uint16_t vf = 0; vf < bench.vfs; ++vf) {
        auto const pci = fmt::format("0000:{:02x}:{:02x}.{}", 2 + vf / 256, vf % 256 / 8, vf % 8);
        fs::create_directories(device / "../" / pci);
        fs::create_symlink("../" + pci, device / fmt::format("virtfn{}", vf));
    }
    LinuxKernelRoots roots;
    roots.sysfs = folder.path();
    return roots;
}

class TimedKernel : public Kernel {
  public:
    explicit TimedKernel(LinuxKernelRoots roots) : kernel_(std::move(roots)) {}
    Result<KernelView> observe(KernelScope const& scope) override {
        auto const began = Steady::now();
        auto seen = kernel_.observe(scope);
        took.looks += seconds_since(began);
        return seen;
    }
    // Its last action is to read the VFs back.
    Result<Observed> perform(KernelStep const& step, Deadline deadline) override {
        reading_began.reset();
        auto done = kernel_.perform(step, deadline);
        if (!reading_began) give_up("nothing was read back, or it was not timed");
        took.read_back += seconds_since(*reading_began);
        return done;
    }
    Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override {
        return kernel_.read_firmware(function);
    }
    Result<std::vector<PfTraffic>> read_traffic(std::optional<PciAddress> const& pf) override {
        return kernel_.read_traffic(pf);
    }
    Took took;  // looks, read_back

  private:
    LinuxKernel kernel_;
};

// Observes first, like the daemon: names are looked up, and the undo knows all VFs.
void look_first(Kernel& kernel, Bench const& bench) {
    auto const seen = kernel.observe(pf);
    if (!seen) give_up(seen.error().detail);
    auto const& state = seen->pfs.at(pf);
    if (state.stale) give_up(state.stale_reason);
    auto const known = std::ranges::count_if(
        state.vfs, [](VfState const& vf) { return vf.settings.mac && vf.settings.trust; });
    if (known != bench.vfs) give_up(fmt::format("{} of {} VFs were seen", known, bench.vfs));
}

// The daemon's code around one step, with a journal on disk.
class Engine {
  public:
    explicit Engine(Bench const& bench) : kernel_(roots_in(folder_, bench)) {
        look_first(kernel_, bench);
    }
    Took execute(Bench const& bench) {
        Plan plan;
        plan.steps.emplace_back(step_of(bench));
        Operation operation;
        operation.id = fmt::format("{:08x}", bench.round);
        operation.subject = "/v1/pfs/" + to_string(pf);
        operation.requested_by = "uid:0";
        operation.steps = planned_steps(plan);
        Seams const seams{kernel_, hypervisor_, *control_, system_clock()};
        kernel_.took = {};
        auto const began = Steady::now();
        auto const done = vfmgr::execute(seams, operation, plan, OnFailure::undo);
        kernel_.took.seconds = seconds_since(began);
        if (!done) give_up(done.error().error.detail);
        auto const& remarks = operation.steps.front().remarks;
        if (!remarks.empty()) give_up(remarks.front());
        return kernel_.took;
    }

  private:
    test::TemporaryFolder const folder_;
    TimedKernel kernel_;
    FakeKernel nothing_{KernelView{}};
    FakeHypervisor hypervisor_{nothing_};
    std::unique_ptr<Control> control_ =
        Control::start(Store::open(folder_.file("vfmgr.db")).value(), system_clock()).value();
};

Took perform(TimedKernel& kernel, Bench const& bench) {
    KernelStep const step = step_of(bench);
    kernel.took = {};
    auto const began = Steady::now();
    auto const done = kernel.perform(step, began + patience);
    kernel.took.seconds = seconds_since(began);
    if (!done) give_up(done.error().detail);
    if (!done->remarks.empty()) give_up(done->remarks.front());
    return kernel.took;
}

double median(std::vector<Took> const& all, double (*part)(Took const&)) {
    std::vector<double> values;
    for (auto const& each : all) values.push_back(part(each));
    std::ranges::sort(values);
    return values.at(values.size() / 2);
}

void print(std::vector<Took> const& all) {
    fmt::print(
        "{{\"net\": {:.6f}, \"seconds\": {:.6f}, \"looks\": {:.6f}, "
        "\"read_back\": {:.6f}}}\n",
        median(all, [](Took const& each) { return each.net(); }),
        median(all, [](Took const& each) { return each.seconds; }),
        median(all, [](Took const& each) { return each.looks; }),
        median(all, [](Took const& each) { return each.read_back; }));
}

}  // namespace

vfmgr::Result<vfmgr::VfSettings> timed_read(NlSocket& socket, std::string const& netdev,
                                            int ifindex, Deadline deadline) {
    reading_began = Steady::now();
    return really_read(socket, netdev, ifindex, deadline);
}

int main(int argc, char** argv) {
    std::string const mode = argc > 1 ? argv[1] : "";
    bool const checks = mode == "check";
    if ((mode != "execute" && mode != "perform" && !checks) || argc != (checks ? 5 : 6))
        give_up("execute|perform NETDEV VFS ROUND REPEATS, or check NETDEV VFS ROUND");
    Bench bench{argv[2], static_cast<std::uint16_t>(std::stoi(argv[3])),
                static_cast<std::uint8_t>(std::stoi(argv[4]))};
    if (checks) {
        check(bench);
        return 0;
    }
    auto const engine = mode == "execute" ? std::make_unique<Engine>(bench) : nullptr;
    test::TemporaryFolder const folder;
    TimedKernel kernel(roots_in(folder, bench));
    std::vector<Took> all;
    for (int left = std::stoi(argv[5]); left > 0; --left, ++bench.round)
        all.push_back(engine ? engine->execute(bench) : perform(kernel, bench));
    print(all);
}
