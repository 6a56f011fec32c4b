// SPDX-License-Identifier: Apache-2.0
// A pool of VFs: which VFs of this host it holds, and what a request for one gets that does not say
// otherwise. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/attachment.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pf.hpp"
#include "api/types/vf.hpp"

namespace vfmgr {

// A PF, or some of its VFs: "0000:01:00.0", "0000:01:00.0/0-3", "0000:01:00.0/5".
struct PfVfs {
    PciAddress pf;
    std::uint16_t first = 0;
    std::uint16_t last = UINT16_MAX;  // included

    [[nodiscard]] static Result<PfVfs> parse(std::string_view text);
    [[nodiscard]] bool contains(std::uint16_t vf) const { return first <= vf && vf <= last; }
    bool operator==(PfVfs const&) const = default;
};
[[nodiscard]] std::string to_string(PfVfs const& vfs);

// Each that is given must hold; of a list, one of its values. An empty one holds for every VF.
struct PoolSelectors {
    std::vector<PfVfs> pfs;
    std::vector<std::string> drivers;  // of the PF, as in /sys/bus/pci/drivers
    std::vector<PciIds> devices;       // of the PF
    std::vector<std::int32_t> numa_nodes;
    std::vector<LinkLayer> link_layers;
    std::vector<std::string> pcie_roots;        // "pci0000:3a", as in /sys/devices
    std::map<std::string, std::string> labels;  // all of them, of the PF's spec
    std::optional<bool> rdma;                   // whether the PF has an RDMA device
    bool operator==(PoolSelectors const&) const = default;
};

// What a request that names the pool gets where it does not say itself.
struct PoolDefaults {
    std::optional<std::string> network;
    VfSpec settings;  // none that identifies one VF: MAC, GUIDs
    std::optional<VerifyMode> verify;
    std::optional<Profile> verify_profile;
    bool operator==(PoolDefaults const&) const = default;
};

struct Pool {
    std::string name;  // unique on the host; [a-z0-9-], at most 32
    PoolSelectors select;
    PoolDefaults defaults;
    // true: VMs that declare it in their metadata get its VFs. Absent: false.
    std::optional<bool> from_metadata{};
    bool operator==(Pool const&) const = default;
};

extern template struct Json<Pool>;

}  // namespace vfmgr
