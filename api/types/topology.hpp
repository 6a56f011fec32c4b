// SPDX-License-Identifier: Apache-2.0
// Where the PCI functions that a VM was given are on its host. In the VM the PCI tree is virtual,
// so only the host knows how far a GPU is from a NIC. Values; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/pci_address.hpp"

namespace vfmgr {

// What lies between two PCI functions, in the words of `nvidia-smi topo` (and NCCL's), the nearest
// last. In a VM the PCI tree is virtual: there it tells what NCCL takes for true.
enum class PciDistance {
    unknown,
    sys,   // the link between NUMA nodes
    node,  // host bridges of one NUMA node
    phb,   // one host bridge
    pxb,   // several PCI switches, and no host bridge
    pix,   // one PCI switch at most
};
template <>
inline constexpr std::array<EnumName<PciDistance>, 6> enum_names<PciDistance> = {
    {{PciDistance::unknown, "unknown"},
     {PciDistance::sys, "SYS"},
     {PciDistance::node, "NODE"},
     {PciDistance::phb, "PHB"},
     {PciDistance::pxb, "PXB"},
     {PciDistance::pix, "PIX"}}};

// A port or bridge on the way to a function. Ids that nobody tells are 0.
struct PciPort {
    PciAddress address;
    std::uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
    bool operator==(PciPort const&) const = default;
};

struct PciPlace {
    PciAddress address;
    std::vector<PciPort> above;          // from the root down
    std::optional<int> numa_node;        // that has CPUs; absent: nobody tells
    std::optional<double> speed_gts;     // GT/s of its link; of a VF, the PF's
    std::optional<std::uint32_t> width;  // lanes
    bool operator==(PciPlace const&) const = default;
};

[[nodiscard]] PciDistance distance(PciPlace const& one, PciPlace const& other);

struct LentFunction {
    std::string in_guest;  // as VmHostdev.in_guest
    std::uint16_t vendor = 0, device = 0;
    PciPlace host;
    bool operator==(LentFunction const&) const = default;
};

struct HostTopology {
    std::vector<LentFunction> functions;
    // What of the host keeps a GPU and a NIC from each other's direct way, for its admin: ACS, ATS.
    std::vector<std::string> notes;
    bool operator==(HostTopology const&) const = default;
};

// A GPU and a NIC of this machine, and whether NCCL would use GPUDirect between them.
struct GpuNicPair {
    PciAddress gpu, nic;
    PciDistance here = PciDistance::unknown;  // by this machine's PCI tree, which NCCL looks at
    std::optional<PciDistance> on_host;       // in a VM whose host told
    bool nccl_uses_gpudirect = false;
    std::string because;
    std::string remedy;
    bool operator==(GpuNicPair const&) const = default;
};

class JsonReader;
void to_json(nlohmann::json& out, PciPort const& port);
void read(JsonReader& reader, PciPort& port);
void to_json(nlohmann::json& out, PciPlace const& place);
void read(JsonReader& reader, PciPlace& place);
void to_json(nlohmann::json& out, LentFunction const& function);
void read(JsonReader& reader, LentFunction& function);
void to_json(nlohmann::json& out, HostTopology const& topology);
void read(JsonReader& reader, HostTopology& topology);
void to_json(nlohmann::json& out, GpuNicPair const& pair);
void read(JsonReader& reader, GpuNicPair& pair);

}  // namespace vfmgr
