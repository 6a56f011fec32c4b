// SPDX-License-Identifier: Apache-2.0
// The InfiniBand port of a VF in this VM, as sysfs has it: IPoIB's netdev does not name its RDMA
// device over netlink, and a port that no subnet manager has set up yet can't be opened. Any
// thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/types/guest.hpp"

namespace vfmgr::guest {

struct IbPort {
    std::string device;  // "mlx5_0"
    std::string pkeys;   // its P_Key table without empty entries: "0xffff 0x8001"
    bool operator==(IbPort const&) const = default;
};

// `sysfs` is /sys. A port's own GUID is in the first entry of its GID table.
[[nodiscard]] std::optional<IbPort> find_ib_port(std::string const& sysfs, Guid const& port_guid);

// What a report says about the port of a VF that can't be tested, so that the host can name what
// the subnet manager lacks. Empty on Ethernet.
[[nodiscard]] std::map<std::string, std::string> port_facts(std::string const& sysfs,
                                                            GuestAttachment const& attachment);

}  // namespace vfmgr::guest
