// SPDX-License-Identifier: Apache-2.0
// A machine as the rules read it: parsed facts. What could not be read is Unknown, with the reason,
// and each time that a rule reads such a field, `reads` has a note (reads.hpp).
// A value that views the Facts it was parsed from, which outlive it. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "vfmgr/machine/facts.hpp"
#include "vfmgr/machine/log_lines.hpp"
#include "vfmgr/machine/reads.hpp"

namespace vfmgr::checks {

struct KernelParameter {
    std::string name;
    std::string value;  // empty: a flag
    bool operator==(KernelParameter const&) const = default;
};

enum class CpuVendor { intel, amd, other };
enum class Architecture { x86, arm, power, s390, other };

struct Cpu {
    Architecture architecture = Architecture::other;
    CpuVendor vendor = CpuVendor::other;  // of x86
    bool vmx = false, svm = false;        // what KVM needs on x86
    bool hypervisor = false;              // this machine is a VM, and its CPU shows it
};

struct PciDevice {
    PciAddress address;
    Field<std::uint16_t> vendor, device;
    Field<std::uint16_t> subsystem_vendor, subsystem_device;
    Field<std::uint32_t> class_code;      // 0x020000: Ethernet controller
    Field<std::uint8_t> revision;         // 0xff: it does not answer
    Field<std::optional<int>> numa_node;  // absent if it has none
    Field<std::optional<std::string>> driver;
    Field<std::optional<std::string>> iommu_group;
    Field<std::optional<std::uint16_t>> total_vfs;          // set for a PF, even if 0
    Field<std::map<std::uint16_t, PciAddress>> vfs;         // by index
    Field<std::optional<PciAddress>> pf;                    // of a VF
    Field<std::vector<PciAddress>> above;                   // ports and bridges, from the root down
    Field<std::optional<double>> speed_gts, speed_gts_max;  // GT/s of its link: now, and at most
    Field<std::optional<int>> width, width_max;             // lanes
    Field<std::vector<std::string>> netdevs, rdma_devices;
};
inline constexpr std::uint16_t vendor_mellanox = 0x15b3;
inline constexpr std::uint16_t vendor_nvidia = 0x10de;
[[nodiscard]] bool is_network(PciDevice const& device);
[[nodiscard]] bool is_bridge(PciDevice const& device);
[[nodiscard]] bool is_nvidia_gpu(PciDevice const& device);

struct MachineNetdev {
    std::string name;
    Field<int> ifindex;
    Field<int> iflink;                     // of the netdev that it is on; its own if on none
    Field<std::optional<MacAddress>> mac;  // absent on IPoIB
    Field<int> hardware_type;              // ARPHRD_ETHER 1, ARPHRD_INFINIBAND 32
    Field<int> mtu;
    Field<bool> up;                      // administratively
    Field<std::optional<bool>> carrier;  // absent: down, so not known
    Field<std::optional<int>> speed_mbps;
    Field<std::optional<PciAddress>> pci;
    Field<std::optional<std::string>> master;  // its bond or bridge
    Field<std::string> phys_port_name;         // "p0"; "pf0vf1" is a representor
    Field<int> dev_port;
};

struct Gid {
    int index = 0;
    std::string gid;          // as in sysfs: "fe80:0000:…"
    Field<std::string> type;  // "RoCE v2", "IB/RoCE v1"
    Field<std::string> netdev;
};

struct MachineRdmaPort {
    int number = 1;
    Field<std::string> state;       // "ACTIVE", "DOWN", "INIT"
    Field<std::string> phys_state;  // "LinkUp", "Disabled", "Polling"
    Field<std::string> link_layer;  // "Ethernet", "InfiniBand"
    Field<std::string> rate;        // "100 Gb/sec (4X EDR)"
    Field<std::optional<unsigned>> sm_lid;
    Field<std::vector<Gid>> gids;
};

struct MachineRdmaDevice {
    std::string name;
    Field<std::optional<Guid>> node_guid;
    Field<std::string> firmware, hca_type, board_id;
    Field<std::optional<PciAddress>> pci;  // absent: software
    Field<std::string> parent;             // the netdev of an rxe device
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
    std::unique_ptr<Reads> reads;
    FactReader facts;
    CheckedMachine kind = CheckedMachine::host;
    Field<std::string> release;
    Field<Known<std::vector<KernelParameter>>> parameters;
    Field<Known<Cpu>> cpu;
    Field<Known<std::set<std::string, std::less<>>>> modules;  // loaded or built in; "_" for "-"
    Field<Known<KernelLog>> log;
    Field<Known<std::vector<PciDevice>>> pci;
    Field<Known<std::vector<MachineNetdev>>> netdevs;
    Field<Known<std::vector<MachineRdmaDevice>>> rdma_devices;
    Field<Known<std::map<std::string, Unit, std::less<>>>> units;
    Field<Known<std::vector<VfioHolding>>> vfio_holders;
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
    if (machine.pci())
        for (auto const& device : *machine.pci())
            if (is_such(device)) found.push_back(&device);
    return found;
}
// True for functions in one slot: of one card, or a VF of it that takes no bus of its own.
[[nodiscard]] bool share_slot(PciAddress const& one, PciAddress const& other);
[[nodiscard]] bool module_loaded(Machine const& machine, std::string_view module);
// True for a VM, by its CPU or by what its firmware calls the machine: VMware hides the first.
[[nodiscard]] bool is_vm(Machine const& machine);
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
    if (!machine.log()) return nullptr;
    auto const& lines = machine.log()->lines;
    auto const found = std::find_if(lines.rbegin(), lines.rend(), is_it);
    return found == lines.rend() ? nullptr : &*found;
}

// --- parsers, for fuzzers and tests ---

[[nodiscard]] std::vector<KernelParameter> parse_kernel_parameters(std::string_view cmdline);
[[nodiscard]] Cpu parse_cpu(std::string_view cpuinfo);
[[nodiscard]] std::map<std::string, Unit, std::less<>> parse_units(std::string_view shown);

}  // namespace vfmgr::checks
