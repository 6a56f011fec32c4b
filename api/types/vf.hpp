// SPDX-License-Identifier: Apache-2.0
// The desired settings of a VF. An absent member means "leave alone". A value.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// `auto` is a keyword: the enumerator is auto_, its text "auto". With it, the PF's link decides.
enum class LinkState { auto_, enable, disable };

struct VfSpec {
    std::optional<MacAddress> mac;
    std::optional<Vlan> vlan;
    std::optional<bool> spoofchk;
    std::optional<bool> trust;
    std::optional<LinkState> link_state;
    std::optional<bool> query_rss;                  // the VF may query the PF's RSS configuration
    std::optional<std::uint32_t> min_tx_rate_mbps;  // 0: no guarantee
    std::optional<std::uint32_t> max_tx_rate_mbps;  // 0: no limit
    std::optional<Guid> node_guid;
    std::optional<Guid> port_guid;
    std::optional<std::uint16_t> msix_vectors;  // desired 0: the driver's default
    std::optional<bool> roce{};  // the VF may use RoCE; via devlink, in switchdev mode
    bool operator==(VfSpec const&) const = default;
};

// Settings for the VF with this number.
struct VfChange {
    std::uint16_t index = 0;
    VfSpec settings;
    bool operator==(VfChange const&) const = default;
};

// The members of VfSpec, in the order in which the kernel applies those of one message
// (do_setvfinfo()). The names are those in JSON and in `best_effort`.
enum class VfAttribute {
    mac,
    vlan,
    max_tx_rate,
    min_tx_rate,
    spoofchk,
    link_state,
    query_rss,
    trust,
    node_guid,
    port_guid,
    msix_vectors,
    roce
};
template <>
inline constexpr std::array<EnumName<VfAttribute>, 12> enum_names<VfAttribute> = {
    {{VfAttribute::mac, "mac"},
     {VfAttribute::vlan, "vlan"},
     {VfAttribute::max_tx_rate, "max_tx_rate_mbps"},
     {VfAttribute::min_tx_rate, "min_tx_rate_mbps"},
     {VfAttribute::spoofchk, "spoofchk"},
     {VfAttribute::link_state, "link_state"},
     {VfAttribute::query_rss, "query_rss"},
     {VfAttribute::trust, "trust"},
     {VfAttribute::node_guid, "node_guid"},
     {VfAttribute::port_guid, "port_guid"},
     {VfAttribute::msix_vectors, "msix_vectors"},
     {VfAttribute::roce, "roce"}}};

// The single list of members for code that treats them alike: calls f(attribute, pointer to member)
// in that order.
template <class F>
void for_each_member(F f) {
    f(VfAttribute::mac, &VfSpec::mac);
    f(VfAttribute::vlan, &VfSpec::vlan);
    f(VfAttribute::max_tx_rate, &VfSpec::max_tx_rate_mbps);
    f(VfAttribute::min_tx_rate, &VfSpec::min_tx_rate_mbps);
    f(VfAttribute::spoofchk, &VfSpec::spoofchk);
    f(VfAttribute::link_state, &VfSpec::link_state);
    f(VfAttribute::query_rss, &VfSpec::query_rss);
    f(VfAttribute::trust, &VfSpec::trust);
    f(VfAttribute::node_guid, &VfSpec::node_guid);
    f(VfAttribute::port_guid, &VfSpec::port_guid);
    f(VfAttribute::msix_vectors, &VfSpec::msix_vectors);
    f(VfAttribute::roce, &VfSpec::roce);
}

// Returns only that member, or an empty spec if it is absent.
[[nodiscard]] VfSpec only(VfSpec const& spec, VfAttribute attribute);
// Returns `base` with every member of `over` that is present replacing its own.
[[nodiscard]] VfSpec overlay(VfSpec base, VfSpec const& over);
[[nodiscard]] bool empty(VfSpec const& spec);
// What a driver reports of a VF that it has just made, or nothing. The other members differ by
// driver.
[[nodiscard]] VfSpec as_made();

extern template struct Json<VfSpec>;                 // reads with the rules for requested values
void check(JsonReader& reader, VfSpec const& spec);  // these rules
void append_json(std::string& text, VfSpec const& spec);  // the same members

// Reads the same members as reported values. No rules apply, because a driver may well report the
// zero MAC. An earlier vfmgr wrote null for unreported values, which are omitted now.
void read_reported(JsonReader& reader, VfSpec& spec);

// The state of a VF, as reported by sysfs and rtnetlink. A value that the driver does not report is
// absent (JSON null), never false or zero.

// A process that holds the VF's VFIO group or device open (/proc/<pid>/fd).
struct VfioHolder {
    std::int32_t pid = 0;
    std::string comm;
    bool operator==(VfioHolder const&) const = default;
};

// The nodes by which a process opens a VF that is bound to VFIO.
struct VfioPaths {
    std::optional<std::string> group;   // "/dev/vfio/27"; another number after each boot
    std::optional<std::string> device;  // "/dev/vfio/devices/vfio3", since Linux 6.6
    std::uint32_t owner = 0;            // uid, of the first of them
    bool operator==(VfioPaths const&) const = default;
};

struct VfState {
    std::uint16_t index = 0;
    PciAddress pci;                            // from the virtfnN link; changes with num_vfs
    std::optional<std::string> driver;         // "vfio-pci", "igbvf"; absent: unbound
    std::optional<std::uint32_t> iommu_group;  // absent: no IOMMU
    std::optional<std::string> ifname;         // netdev on this host, if its driver created one
    VfSpec settings;                           // what rtnetlink reports; absent: not reported
    std::vector<VfioHolder> holders;
    std::optional<VfioPaths> vfio{};  // absent: not bound to VFIO
    bool operator==(VfState const&) const = default;
};

// Traffic through the VF, as counted by its PF's driver: received means received by the VF. Drivers
// start counting at different times, and with some a reset of the VF clears the counters.
struct VfCounters {
    std::optional<std::uint64_t> rx_packets, rx_bytes, rx_dropped;
    std::optional<std::uint64_t> tx_packets, tx_bytes, tx_dropped;
    std::optional<std::uint64_t> multicast, broadcast;
    bool operator==(VfCounters const&) const = default;
};

// The counters of the VF with this number.
struct VfTraffic {
    std::uint16_t index = 0;
    VfCounters counters;
    bool operator==(VfTraffic const&) const = default;
};
// Traffic through a PF's VFs, and what its RDMA device counts. Rates are differences between two.
struct PfTraffic {
    PciAddress pf;
    Time read_at{};
    std::vector<VfTraffic> vfs;    // by index; without those that no driver counts for
    std::optional<Error> problem;  // why they could not be read
    // Of the PF's RDMA device, by the kernel's names ("out_of_sequence"). The devices that VMs have
    // count their own traffic, in the VM.
    std::map<std::string, std::uint64_t> rdma_hw_counters{};
    bool operator==(PfTraffic const&) const = default;
};

// Why a VF may not be attached, and what it is waiting for.
struct VfQuarantine {
    std::string reason;
    std::vector<std::string> residue;
    std::string vm;  // the VM that had the VF
    Time since{};
};

// in_use: it has a user that is none of our attachments, or its users can't be read now.
enum class VfStatus { free, reserved, attached, quarantined, in_use };

// What is observed of a VF, with what the daemon knows of it: the answer of a GET.
struct VfView {
    VfState vf;
    PciAddress pf;
    VfStatus state = VfStatus::in_use;
    std::optional<std::string> attachment;  // its id
    std::optional<std::string> vm;          // the VM that has the VF
    std::optional<VfQuarantine> quarantine;
    std::vector<std::string> drift;  // from its desired state, one sentence each
};

[[nodiscard]] inline VfId id_of(VfView const& view) {
    return {view.pf, view.vf.index};
}

extern template struct Json<VfCounters>;
extern template struct Json<VfTraffic>;
extern template struct Json<PfTraffic>;
extern template struct Json<VfState>;
extern template struct Json<VfView>;

}  // namespace vfmgr
