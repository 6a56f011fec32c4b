// SPDX-License-Identifier: Apache-2.0
// A machine as the rules read it: parsed facts. What could not be read is Unknown, with the reason.
// A value that views the Facts it was parsed from, which outlive it; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "vfmgr/machine/driver_log.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks {

struct KernelParameter {
    std::string name;
    std::string value;  // empty: a flag
    bool operator==(KernelParameter const&) const = default;
};

enum class CpuVendor { intel, amd, other };

struct Cpu {
    CpuVendor vendor = CpuVendor::other;
    bool virtualisation = false;  // vmx or svm
    bool hypervisor = false;      // this machine is a VM, and its CPU shows it
};

struct PciDevice {
    PciAddress address;
    std::uint16_t vendor = 0, device = 0;
    std::uint16_t subsystem_vendor = 0, subsystem_device = 0;
    std::uint32_t class_code = 0;  // 0x020000: Ethernet controller
    std::uint8_t revision = 0;     // 0xff: it does not answer
    std::optional<int> numa_node;  // absent if it has none
    std::optional<std::string> driver;
    std::optional<std::string> iommu_group;
    std::optional<std::uint16_t> total_vfs;          // set for a PF, even if 0
    std::map<std::uint16_t, PciAddress> vfs;         // by index
    std::optional<PciAddress> pf;                    // of a VF
    std::vector<PciAddress> above;                   // ports and bridges, from the root down
    std::optional<double> speed_gts, speed_gts_max;  // GT/s of its link: now, and what it can do
    std::optional<int> width, width_max;             // lanes
    std::vector<std::string> netdevs, rdma_devices;
};
inline constexpr std::uint16_t vendor_mellanox = 0x15b3;
inline constexpr std::uint16_t vendor_nvidia = 0x10de;
[[nodiscard]] bool is_network(PciDevice const& device);
[[nodiscard]] bool is_bridge(PciDevice const& device);
[[nodiscard]] bool is_nvidia_gpu(PciDevice const& device);

struct MachineNetdev {
    std::string name;
    int ifindex = 0;
    std::optional<MacAddress> mac;  // absent on IPoIB
    int hardware_type = 0;          // ARPHRD_ETHER 1, ARPHRD_INFINIBAND 32
    int mtu = 0;
    bool up = false;              // administratively
    std::optional<bool> carrier;  // absent: down, so not known
    std::optional<int> speed_mbps;
    std::optional<PciAddress> pci;
    std::optional<std::string> master;  // its bond or bridge
    std::string phys_port_name;         // "p0"; "pf0vf1" is a representor
    int dev_port = 0;
};

struct Gid {
    int index = 0;
    std::string gid;   // as in sysfs: "fe80:0000:…"
    std::string type;  // "RoCE v2", "IB/RoCE v1"
    std::string netdev;
};

struct MachineRdmaPort {
    int number = 1;
    std::string state;       // "ACTIVE", "DOWN", "INIT"
    std::string phys_state;  // "LinkUp", "Disabled", "Polling"
    std::string link_layer;  // "Ethernet", "InfiniBand"
    std::string rate;        // "100 Gb/sec (4X EDR)"
    std::optional<unsigned> sm_lid;
    std::vector<Gid> gids;
};

struct MachineRdmaDevice {
    std::string name;
    std::optional<Guid> node_guid;
    std::string firmware, hca_type, board_id;
    std::optional<PciAddress> pci;  // absent: software
    std::string parent;             // the netdev of an rxe device
    std::vector<MachineRdmaPort> ports;
};

struct Unit {
    std::string load, active, file;  // "loaded", "active", "enabled"

    [[nodiscard]] bool installed() const { return load == "loaded"; }
    [[nodiscard]] bool runs() const { return active == "active"; }
};

// A VFIO group or device that a process holds open.
struct VfioHolding {
    std::string node;  // "/dev/vfio/12"
    std::string process;
    std::string vm;  // QEMU's name for it; empty: not QEMU
};

struct Machine {
    Facts const& facts;
    CheckedMachine kind = CheckedMachine::host;
    std::string release;
    Known<std::vector<KernelParameter>> parameters;
    Known<Cpu> cpu;
    Known<std::set<std::string, std::less<>>> modules;  // loaded or built in; "_" for "-"
    Known<KernelLog> log;
    Known<std::vector<PciDevice>> pci;
    Known<std::vector<MachineNetdev>> netdevs;
    Known<std::vector<MachineRdmaDevice>> rdma_devices;
    Known<std::map<std::string, Unit, std::less<>>> units;
    Known<std::vector<VfioHolding>> vfio_holders;
};
[[nodiscard]] Machine read_machine(Facts const& facts);

// --- for the rules ---

// Returns the last parameter of that name, the one the kernel uses.
[[nodiscard]] KernelParameter const* find_parameter(std::vector<KernelParameter> const& all,
                                                    std::string_view name);
[[nodiscard]] PciDevice const* find_pci(Machine const& machine, PciAddress const& address);
// Returns the PCI functions that `is_such` accepts; none if they can't be read.
template <class Judge>
[[nodiscard]] std::vector<PciDevice const*> functions_of(Machine const& machine, Judge is_such) {
    std::vector<PciDevice const*> found;
    if (machine.pci)
        for (auto const& device : *machine.pci)
            if (is_such(device)) found.push_back(&device);
    return found;
}
// True for functions in one slot: of one card, or a VF of it that takes no bus of its own.
[[nodiscard]] bool share_slot(PciAddress const& one, PciAddress const& other);
[[nodiscard]] bool module_loaded(Machine const& machine, std::string_view module);
// "m", "y", "n" when it is not set; absent if the kernel's options can't be read. Works only for
// options that sources.cpp keeps.
[[nodiscard]] std::optional<std::string> kernel_option(Machine const& machine,
                                                       std::string_view option);
// Null if systemd has no such unit, or can't be asked.
[[nodiscard]] Unit const* find_unit(Machine const& machine, std::string_view name);
// Returns the first line that contains all of these.
[[nodiscard]] LogLine const* find_line(KernelLog const& log,
                                       std::initializer_list<std::string_view> words);
// Returns the last line that `is_it` accepts; null without a log.
template <class Judge>
[[nodiscard]] LogLine const* last_line(Machine const& machine, Judge is_it) {
    if (!machine.log) return nullptr;
    auto const& lines = machine.log->lines;
    auto const found = std::find_if(lines.rbegin(), lines.rend(), is_it);
    return found == lines.rend() ? nullptr : &*found;
}

// --- parsers, for fuzzers and tests ---

[[nodiscard]] std::vector<KernelParameter> parse_kernel_parameters(std::string_view cmdline);
[[nodiscard]] Cpu parse_cpu(std::string_view cpuinfo);
[[nodiscard]] std::map<std::string, Unit, std::less<>> parse_units(std::string_view shown);

}  // namespace vfmgr::checks
