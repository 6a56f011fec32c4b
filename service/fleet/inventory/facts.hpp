// SPDX-License-Identifier: Apache-2.0
// What the fleet understands of an item that a host lists: what orders and filters lists, and what
// the scheduler needs. The item's text has the rest. Values; any thread.
//
// A host may be of the version before or after this one, and may lie. So members that are not
// needed here may be anything, and a word that this version doesn't know is an absent value, never
// a good one. Texts have at most fact_bytes_max bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/attachment.hpp"
#include "api/types/pf.hpp"
#include "api/types/vf.hpp"
#include "api/types/vm_info.hpp"

namespace vfmgr::fleet {

inline constexpr std::size_t fact_bytes_max = 256;
inline constexpr std::size_t fact_count_max = 256;  // of labels, networks and the like in one item

struct PfFacts {
    PciAddress pci;
    std::string ifname;  // empty: it has none now
    std::string driver;
    std::optional<LinkLayer> link_layer{};
    std::optional<PciIds> pci_ids{};
    std::optional<std::int32_t> numa_node{};
    std::optional<std::string> pcie_root{};  // "pci0000:3a": near what else is below it
    std::optional<std::string> rdma_device{};
    std::optional<std::string> rdma_driver{};  // absent: hardware, if it has a device
    std::uint16_t num_vfs = 0;
    std::uint16_t total_vfs = 0;
    bool up = false;
    bool carrier = false;
    bool stale = false;                // the host can't read it now
    bool stuck = false;                // nothing is begun on it
    bool pci_busy = false;             // it keeps the host from making and removing VFs
    std::optional<Standing> standing;  // absent: a word that is not known here
    std::optional<PfMode> mode{};      // absent: it is only observed, or as above
    std::map<std::string, std::string> labels{};
    std::vector<std::string> networks{};  // that it carries
    // Where its VFs' texts belong in its own text, which is kept without them.
    std::uint32_t vfs_at = 0;
};

struct VfFacts {
    VfId id;
    std::optional<VfStatus> state;  // absent: a word that is not known here, so not free
    std::optional<std::string> attachment{};
    std::optional<std::string> vm{};  // its name
};

struct VmFacts {
    std::string uuid;
    std::string name;
    std::optional<VmState> state;
    std::uint32_t free_pcie_ports = 0;
};

struct AttachmentFacts {
    std::string id;
    VfId vf;
    std::string vm;       // its name, or the external holder's
    std::string vm_uuid;  // empty with a holder
    std::optional<std::string> network{};
    std::optional<std::string> pool{};
    std::optional<std::string> reservation{};
    std::optional<MacAddress> mac{};
    std::optional<Guid> node_guid{};
    std::optional<Guid> port_guid{};
    std::optional<IpAddress> address{};
    std::optional<AttachmentState> state{};
    std::optional<Verdict> verdict{};  // of the latest run
    std::optional<Time> created_at{};
    // Where the latest run is in the attachment's text; of no bytes: there was none.
    std::uint32_t run_at = 0;
    std::uint32_t run_bytes = 0;
};

struct NetworkFacts {
    std::string name;
    std::optional<std::uint16_t> vlan{};
    std::vector<PciAddress> pfs{};  // that carry it
};

struct PoolFacts {
    std::string name;
    std::optional<std::string> network{};  // its default
};

struct ReservationFacts {
    std::string name;
    std::optional<std::string> pool{};
    std::optional<std::string> network{};
    std::optional<std::string> tenant{};
    std::vector<VfId> vfs{};  // that no attachment has taken yet
    std::optional<Time> expires_at{};
};

// The key that the item has in its host's list, whose order is that of these keys.
[[nodiscard]] inline PciAddress const& key_of(PfFacts const& pf) {
    return pf.pci;
}
[[nodiscard]] inline VfId const& key_of(VfFacts const& vf) {
    return vf.id;
}
[[nodiscard]] inline std::string const& key_of(VmFacts const& vm) {
    return vm.uuid;
}
[[nodiscard]] inline std::string const& key_of(AttachmentFacts const& attachment) {
    return attachment.id;
}
[[nodiscard]] inline std::string const& key_of(NetworkFacts const& network) {
    return network.name;
}
[[nodiscard]] inline std::string const& key_of(PoolFacts const& pool) {
    return pool.name;
}
[[nodiscard]] inline std::string const& key_of(ReservationFacts const& reservation) {
    return reservation.name;
}

template <class Facts>
using KeyOf = std::remove_cvref_t<decltype(key_of(std::declval<Facts const&>()))>;

// Reads an item: a text of compact_json(). Fails with a detail that names the member. An item that
// has a member "host" is refused: the fleet's own comes first, and many clients take the last.
template <class Facts>
[[nodiscard]] Result<Facts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<PfFacts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<VfFacts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<VmFacts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<AttachmentFacts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<NetworkFacts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<PoolFacts> read_facts(std::string_view item);
template <>
[[nodiscard]] Result<ReservationFacts> read_facts(std::string_view item);

}  // namespace vfmgr::fleet
