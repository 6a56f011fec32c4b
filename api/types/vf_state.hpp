// SPDX-License-Identifier: Apache-2.0
// The state of a VF, as reported by sysfs and rtnetlink. A value that the driver does not report is
// absent (JSON null), never false or zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/json_fwd.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/vf_spec.hpp"

namespace vfmgr {

// A process that holds the VF's VFIO group or device open (/proc/<pid>/fd).
struct VfioHolder {
    std::int32_t pid = 0;
    std::string comm;
    bool operator==(VfioHolder const&) const = default;
};

struct VfState {
    std::uint16_t index = 0;
    PciAddress pci;                            // from the virtfnN link; changes with num_vfs
    std::optional<std::string> driver;         // "vfio-pci", "igbvf"; absent: unbound
    std::optional<std::uint32_t> iommu_group;  // absent: no IOMMU
    std::optional<std::string> ifname;         // netdev on this host, if its driver created one
    VfSpec settings;                           // what rtnetlink reports; absent: not reported
    std::vector<VfioHolder> holders;
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

extern template struct Json<VfCounters>;
extern template struct Json<VfioHolder>;
extern template struct Json<VfState>;

}  // namespace vfmgr
