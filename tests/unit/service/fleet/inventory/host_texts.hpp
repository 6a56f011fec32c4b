// SPDX-License-Identifier: Apache-2.0
// Answers of hosts, for the tests of this folder: with the members that the fleet needs, and some
// that it does not know.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "service/fleet/inventory/inventory.hpp"
#include "tests/unit/repository.hpp"

namespace vfmgr::fleet::tests {

// A document of api/examples.
inline std::string example(std::string const& name) {
    std::ifstream file(vfmgr::test::repository() / "api/examples" / (name + ".json"));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string word(std::string const& text) {
    return text.empty() ? "null" : "\"" + text + "\"";
}

inline std::string pci_text(int bus) {
    return fmt::format("0000:{:02x}:00.0", bus);
}

inline std::string vf_text(int bus, int index, std::string const& state = "free",
                           std::string const& attachment = "", std::string const& vm = "") {
    constexpr char const* unread =
        R"("driver":null,"settings":{"mac":"02:00:00:00:00:01"},"holders":[],"news":[1,{"a":2}])";
    return fmt::format(R"({{"pf":"{}","index":{},"state":"{}","attachment":{},"vm":{},{}}})",
                       pci_text(bus), index, state, word(attachment), word(vm), unread);
}

inline std::string joined(std::vector<std::string> const& texts) {
    std::string all;
    for (auto const& text : texts) all += (all.empty() ? "" : ",") + text;
    return all;
}

inline std::string pf_text(int bus, std::vector<std::string> const& vfs = {}) {
    return fmt::format(
        R"({{"info":{{"pci":"{}","ifname":"enp{}s0","driver":"mlx5_core","link_layer":"ethernet",)"
        R"("numa_node":1,"pcie_root":"pci0000:00","pci_ids":"15b3:101d","rdma_device":"mlx5_{}",)"
        R"("rdma_driver":null,"total_vfs":8,"num_vfs":{},"up":true,"carrier":true}},"vfs":[{}],)"
        R"("host_interfaces":[],"stale":false,"stale_reason":"","stuck":null,"pci_busy":false,)"
        R"("standing":{{"is":"here","detail":null,"remedy":null}},)"
        R"("spec":{{"mode":"manage","labels":{{"rail":"{}"}}}},"networks":["blue"],"drift":[]}})",
        pci_text(bus), bus, bus, vfs.size(), joined(vfs), bus);
}

inline std::string attachment_text(std::string const& id, int bus, int index, std::string const& vm,
                                   std::string const& network = "blue",
                                   std::string const& verdict = "") {
    auto const run = verdict.empty()
                         ? std::string("null")
                         : fmt::format(R"({{"run":"r-{}","verdict":"{}"}})", id, verdict);
    return fmt::format(R"({{"id":"{}","spec":{{"vm":"{}","network":{},"pool":"rails"}},)"
                       R"("vf":{{"pf":"{}","index":{}}},"vm":"{}","vm_uuid":"uuid-{}",)"
                       R"("settings":{{"mac":"02:00:00:00:{:02x}:{:02x}"}},"address":"10.1.0.9",)"
                       R"("state":"attached","verification":{},"candidates":[]}})",
                       id, vm, word(network), pci_text(bus), index, vm, vm, bus, index, run);
}

inline std::string vm_text(std::string const& name, std::string const& state = "running") {
    return fmt::format(R"({{"uuid":"uuid-{}","name":"{}","state":"{}","free_pcie_ports":3}})", name,
                       name, state);
}

inline Time at(int seconds) {
    return Time{} + std::chrono::hours(24 * 365 * 50) + std::chrono::seconds(seconds);
}

inline HostEntry host(std::string const& name, std::uint32_t number, std::string const& rack = "",
                      std::map<std::string, std::string> labels = {}) {
    return {name, number, rack, std::move(labels)};
}

}  // namespace vfmgr::fleet::tests
