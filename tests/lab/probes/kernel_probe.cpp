// SPDX-License-Identifier: Apache-2.0
// Performs kernel steps on the real kernel of the emulated host: performs each step given as one
// line of JSON on standard input and prints its outcome. The word "observe" prints the view, "vfs
// NETDEV" the VFs of a network device as its driver reports them, PCI or not, "eswitch BUS NAME" a
// device's switch as devlink reports it, and "roce BUS NAME VF on|off" sets RoCE of a VF. Exits
// with 1 when one failed.
#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <variant>

#include "api/types/json.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/netlink/devlink.hpp"
#include "vfmgr/netlink/vf.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds step_seconds_max{60};

nlohmann::json interface_json(HostInterface const& interface) {
    auto peers = nlohmann::json::array();
    for (auto const& peer : interface.peers)
        peers.push_back({{"address", to_string(peer.address)},
                         {"mac", peer.mac ? to_string(*peer.mac) : "none"}});
    return {{"interface", to_string(interface.id)},
            {"ifname", interface.ifname},
            {"up", interface.up},
            {"mtu", interface.mtu},
            {"ours", interface.ours},
            {"addresses", JsonWriter::encode(interface.addresses)},
            {"prefixes", JsonWriter::encode(interface.prefixes)},
            {"peers", peers}};
}

nlohmann::json view_json(KernelView const& view) {
    auto out = nlohmann::json::object();
    for (auto const& [pci, pf] : view.pfs) {
        auto interfaces = nlohmann::json::array();
        for (auto const& interface : pf.interfaces) interfaces.push_back(interface_json(interface));
        out["pfs"].push_back({{"info", pf.info},
                              {"vfs", JsonWriter::encode(pf.vfs)},
                              {"host_interfaces", interfaces},
                              {"stale", pf.stale},
                              {"stale_reason", pf.stale_reason}});
    }
    for (auto const& route : view.routes)
        out["routes"].push_back(to_string(route.prefix) + " dev " + route.ifname);
    return out;
}

nlohmann::json error_json(Error const& error) {
    return error;
}

int observe(Kernel& kernel) {
    auto const view = kernel.observe(std::nullopt);
    auto const out = view ? view_json(*view) : error_json(view.error());
    fmt::print("{}\n", out.dump(1));
    return view ? 0 : 1;
}

Result<VfSettings> read_vfs(std::string const& netdev) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    auto const ifindex = static_cast<int>(::if_nametoindex(netdev.c_str()));
    return read_vf_settings(socket, netdev, ifindex,
                            std::chrono::steady_clock::now() + step_seconds_max);
}

int print_vfs(std::string const& netdev) {
    auto const settings = read_vfs(netdev);
    if (!settings) {
        fmt::print("{}\n", error_json(settings.error()).dump());
        return 1;
    }
    auto out = nlohmann::json::array();
    for (auto const& [index, spec] : *settings) {
        out.push_back({{"index", index}, {"settings", spec}});
    }
    fmt::print("{}\n", out.dump());
    return 0;
}

Deadline soon() {
    return std::chrono::steady_clock::now() + step_seconds_max;
}

Result<nlohmann::json> eswitch(DevlinkDevice const& device) {
    VFMGR_TRY(auto const mode, read_eswitch_mode(device, soon()));
    VFMGR_TRY(auto const ports, list_vf_ports(device, soon()));
    nlohmann::json out{{"mode", mode ? enum_name(*mode) : "none"},
                       {"ports", nlohmann::json::array()}};
    for (auto const& port : ports)
        out["ports"].push_back({{"index", port.index},
                                {"vf", port.vf},
                                {"roce", port.roce ? nlohmann::json(*port.roce) : nullptr}});
    return out;
}

Result<nlohmann::json> roce(DevlinkDevice const& device, unsigned vf, bool on) {
    VFMGR_TRY(auto const ports, list_vf_ports(device, soon()));
    auto const port = std::ranges::find(ports, vf, &VfPort::vf);
    if (port == ports.end())
        return fail(Problem::not_found, "no port of that VF", "choose another");
    VFMGR_TRY(auto const ack, set_roce(device, *port, on, soon()));
    return nlohmann::json{{"error", ack.error}, {"text", ack.text}};
}

int ask_devlink(std::string const& line) {
    std::istringstream words(line);
    std::string what, on;
    DevlinkDevice device;
    unsigned vf = 0;
    words >> what >> device.bus >> device.name >> vf >> on;
    auto const answer = what == "roce" ? roce(device, vf, on == "on") : eswitch(device);
    fmt::print("{}\n", answer ? answer->dump() : error_json(answer.error()).dump());
    return answer ? 0 : 1;
}

Result<Observed> perform(Kernel& kernel, Step const& step) {
    auto const* const kernels = std::get_if<KernelStep>(&step);
    if (kernels) return kernel.perform(*kernels, soon());
    return fail(Problem::invalid_request, "not a step of the kernel", "give another");
}

int perform_line(Kernel& kernel, std::string const& line) {
    auto const step = from_json_text<Step>(line);
    if (!step) {
        fmt::print("{}\n", error_json(step.error()).dump());
        return 1;
    }
    auto const start = std::chrono::steady_clock::now();
    auto const observed = perform(kernel, *step);
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
    auto const out =
        observed ? nlohmann::json{{"remarks", observed->remarks}} : error_json(observed.error());
    fmt::print("{} [{:.3f} s]: {} {}\n", sentence(*step), seconds.count(),
               observed ? "done" : "FAILED", out.dump());
    return observed ? 0 : 1;
}

int do_line(Kernel& kernel, std::string const& line) {
    constexpr std::string_view vfs = "vfs ";
    if (line == "observe") return observe(kernel);
    if (line.starts_with(vfs)) return print_vfs(line.substr(vfs.size()));
    if (line.starts_with("eswitch ") || line.starts_with("roce ")) return ask_devlink(line);
    return perform_line(kernel, line);
}

}  // namespace
}  // namespace vfmgr

int main() {
    vfmgr::LinuxKernel kernel{vfmgr::LinuxKernelRoots{}};
    int status = 0;
    for (std::string line; std::getline(std::cin, line);) {
        status |= vfmgr::do_line(kernel, line);
        std::fflush(stdout);
    }
    return status;
}
