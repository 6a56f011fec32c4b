// SPDX-License-Identifier: Apache-2.0
// The real hypervisor seam by hand, for the emulated host: hypervisor_probe URI STEP_SECONDS_MAX.
// Performs each step given as one line of JSON on standard input and prints its outcome; "observe"
// prints the view, "cid N" who has that vsock CID, "settle UUID" waits for libvirt's job. Ends with
// 1 when something failed.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <type_traits>
#include <variant>

#include "api/types/json.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

namespace vfmgr {
namespace {

nlohmann::json error_json(Error const& error) {
    nlohmann::json out;
    to_json(out, error);
    return out;
}

nlohmann::json shown(Observed const&) {
    return nlohmann::json::object();
}
nlohmann::json shown(HypervisorView const& view) {
    auto out = nlohmann::json::array();
    for (auto const& [uuid, vm] : view.vms) out.push_back(vm);
    return out;
}
nlohmann::json shown(VmIdentity const& vm) {
    return {{"uuid", vm.uuid}, {"name", vm.name}, {"start_id", vm.start_id}};
}

// Steps of the kernel are refused: this is the other seam.
Result<Observed> perform(Hypervisor& hypervisor, std::string const& line, Deadline deadline) {
    VFMGR_TRY(Step const step, from_json_text<Step>(line));
    return std::visit(
        [&](auto const& each) -> Result<Observed> {
            if constexpr (std::is_constructible_v<HypervisorStep, decltype(each)>)
                return hypervisor.perform(each, deadline);
            else
                return fail(Problem::invalid_request, "not a step of the hypervisor",
                            "give another");
        },
        step);
}

template <class T>
int report(std::string const& line, std::chrono::steady_clock::time_point start,
           Result<T> const& result) {
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
    nlohmann::json out = nlohmann::json::object();
    if (!result)
        out = error_json(result.error());
    else if constexpr (!std::is_void_v<T>)
        out = shown(*result);
    fmt::print("{} [{:.3f} s]: {} {}\n", line, seconds.count(), result ? "done" : "FAILED",
               out.dump(1));
    return result ? 0 : 1;
}

int run_line(LibvirtHypervisor& hypervisor, std::string const& line, std::chrono::seconds most) {
    auto const start = std::chrono::steady_clock::now();
    if (line == "observe") return report(line, start, hypervisor.observe(std::nullopt));
    if (line.starts_with("cid ")) {
        auto const cid = std::strtoul(line.c_str() + 4, nullptr, 10);
        return report(line, start, hypervisor.resolve_cid(static_cast<std::uint32_t>(cid)));
    }
    if (line.starts_with("settle "))
        return report(line, start, hypervisor.settle(line.substr(7), start + most));
    return report(line, start, perform(hypervisor, line, start + most));
}

}  // namespace
}  // namespace vfmgr

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::atomic<int> looks{0};
    vfmgr::LibvirtHypervisor hypervisor{argv[1], [&] { ++looks; }};
    std::chrono::seconds const most{std::strtol(argv[2], nullptr, 10)};
    int status = 0;
    for (std::string line; std::getline(std::cin, line);) {
        status |= vfmgr::run_line(hypervisor, line, most);
        fmt::print("(told to look again: {})\n", looks.load());
        std::fflush(stdout);
    }
    return status;
}
