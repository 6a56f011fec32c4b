// SPDX-License-Identifier: Apache-2.0
// Observes the VMs of the emulated host before and after a command, while none of libvirt's events
// gets through:
//   libvirt_probe COMMAND
// Prints as JSON both observations (the host's devices in each VM's XML), the time that each took,
// and whether an event came. Exits with 1 when libvirt can't be observed or the command fails.
#include <fmt/format.h>
#include <libvirt/libvirt.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string>

#include "api/types/json.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

namespace vfmgr {
namespace {

// libvirt's event loop calls callbacks one after the other: while this one waits, no other is
// called, so no event is delivered.
struct HeldEvents {
    std::promise<void> begun;
    std::promise<void> ended;

    void hold() {
        auto const wait = [](int timer, void* opaque) {
            auto& held = *static_cast<HeldEvents*>(opaque);
            virEventUpdateTimeout(timer, -1);
            held.begun.set_value();
            held.ended.get_future().wait();
        };
        virEventAddTimeout(0, wait, this, nullptr);
        begun.get_future().wait();
    }
};

nlohmann::json devices_of(HypervisorView const& view) {
    auto const addresses = [](std::vector<VmHostdev> const& devices) {
        auto all = nlohmann::json::array();
        for (auto const& each : devices) all.push_back(to_string(each.pci));
        return all;
    };
    auto out = nlohmann::json::object();
    for (auto const& [uuid, vm] : view.vms)
        out[vm.name] = {{"live", addresses(vm.live)}, {"config", addresses(vm.config)}};
    return out;
}

Result<nlohmann::json> observe(Hypervisor& hypervisor) {
    auto const began = std::chrono::steady_clock::now();
    VFMGR_TRY(auto const view, hypervisor.observe(std::nullopt));
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - began;
    return nlohmann::json{{"vms", devices_of(view)}, {"milliseconds", took.count()}};
}

Result<nlohmann::json> observe_around(char const* command) {
    std::atomic<bool> event{false};
    LibvirtHypervisor hypervisor("qemu:///system", [&] { event = true; });
    VFMGR_TRY(auto const first, observe(hypervisor));
    HeldEvents held;
    held.hold();
    VFMGR_TRY(auto const before, observe(hypervisor));
    if (std::system(command) != 0)
        return fail(Problem::invalid_request, fmt::format("{} failed", command), "see its output");
    VFMGR_TRY(auto const after, observe(hypervisor));
    nlohmann::json out{
        {"first", first}, {"before", before}, {"after", after}, {"event", event.load()}};
    held.ended.set_value();
    return out;
}

}  // namespace
}  // namespace vfmgr

int main(int count, char** arguments) {
    using namespace vfmgr;
    if (count != 2) return 2;
    auto const observed = observe_around(arguments[1]);
    fmt::print("{}\n", observed ? observed->dump() : nlohmann::json(observed.error()).dump());
    return observed ? 0 : 1;
}
