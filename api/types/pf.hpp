// SPDX-License-Identifier: Apache-2.0
// A PF: what it is, what is observed of it, and what is desired. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/vf.hpp"

namespace vfmgr {

// Identifies a PF independently of its address, which changes with its slot, and of its netdev's
// name, which udev and admins change. A value.

struct PfIdentity {
    std::optional<MacAddress> mac;      // the permanent one, whatever a bond or an admin set
    std::optional<Guid> guid;           // the node GUID of an InfiniBand PF
    std::optional<std::string> serial;  // the card's, from its VPD; all PFs of the card share it
    bool operator==(PfIdentity const&) const = default;
};

// True if no part of it could be read, for example because no driver is bound.
[[nodiscard]] bool empty(PfIdentity const& identity);
// For display: "MAC 52:54:00:00:01:01, serial MT2108X00001"; "an unknown identity" if empty.
[[nodiscard]] std::string to_string(PfIdentity const& identity);

// unknown: the two have no MAC or GUID to compare. A serial distinguishes cards, but not the PFs of
// one card.
enum class SamePf { yes, no, unknown };
[[nodiscard]] SamePf same_pf(PfIdentity const& known, PfIdentity const& observed);
// Adds to `known` what only `observed` has, if both are of one device or at least of one card.
[[nodiscard]] PfIdentity completed(PfIdentity known, PfIdentity const& observed);

extern template struct Json<PfIdentity>;

// PfInfo: the observed state of a PF. PfSpec: its desired state. Values.

// A PF's vendor and device ID: "8086:1521".
struct PciIds {
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;

    [[nodiscard]] static Result<PciIds> parse(std::string_view text);
    auto operator<=>(PciIds const&) const = default;
};
[[nodiscard]] std::string to_string(PciIds const& ids);

// How the NIC forwards between its VFs (devlink's eswitch mode). In switchdev mode each VF has a
// representor netdev on the host, and VLANs, rates and trust are set elsewhere.
enum class EswitchMode { legacy, switchdev };

// A VFIO driver made for these devices, with more device support than vfio-pci: mlx5_vfio_pci can
// migrate its VFs.
struct VfioVariant {
    std::string module;                 // as in modules.alias
    std::optional<std::string> driver;  // as in /sys/bus/pci/drivers; absent: not loaded
    bool operator==(VfioVariant const&) const = default;
};

struct PfInfo {
    PciAddress pci;
    std::string ifname;  // not an identity: udev and admins rename netdevs
    std::string driver;
    std::string vendor_name;  // from libpci
    std::string device_name;
    LinkLayer link_layer = LinkLayer::ethernet;
    std::optional<MacAddress> mac;    // absent on IPoIB (20-byte address)
    std::optional<Guid> port_guid{};  // of an InfiniBand port with IPoIB
    std::uint16_t total_vfs = 0;
    std::uint16_t num_vfs = 0;  // counted from virtfn links: reading sriov_numvfs can hang
    std::uint32_t mtu = 0;      // bytes
    bool up = false;            // administratively (IFF_UP)
    bool carrier = false;
    std::optional<std::string> controller;  // interface of the bond or bridge that it is part of
    std::optional<std::int32_t> numa_node;
    std::optional<std::string> rdma_device;     // "mlx5_0", or a software device on it
    std::optional<std::string> rdma_driver;     // absent: hardware; "rxe" or "siw": software
    std::optional<VfioVariant> vfio_variant{};  // for its VFs; absent: vfio-pci, or no VFs
    std::optional<EswitchMode> eswitch_mode{};  // absent: the driver has no such switch
    PfIdentity identity{};                      // as read now
    std::optional<PciIds> pci_ids{};            // vendor and device
    std::optional<std::string> pcie_root{};     // "pci0000:3a", as in /sys/devices
    bool operator==(PfInfo const&) const = default;
};

// For display: the interface's name, or the address of a PF that has none now (bound to vfio-pci,
// or InfiniBand without IPoIB).
[[nodiscard]] std::string display_name(PfInfo const& pf);

enum class PfMode { observe, manage, enforce };

// Settings that the VF with this number has while no VM has it.
struct FreeVf {
    std::uint16_t index = 0;
    VfSpec settings;
    bool operator==(FreeVf const&) const = default;
};

struct PfSpec {
    PfMode mode = PfMode::manage;
    std::optional<std::uint16_t> num_vfs;
    // Driver of free VFs, as in /sys/bus/pci/drivers; absent: none is bound.
    std::optional<std::string> vf_driver{};
    std::map<std::string, std::string> labels{};  // for pools to select by, such as rail=0
    // By number, each once. An attachment has its own settings, and keeps those that it does not
    // name.
    std::vector<FreeVf> free_vfs{};
    bool operator==(PfSpec const&) const = default;
};

extern template struct Json<PfInfo>;
extern template struct Json<PfSpec>;

// States whether the device at a PF's address is that PF. A value.

enum class Standing {
    here,            // the PF is at its address, or no evidence contradicts it
    driver_unbound,  // a function is at its address without a driver; nothing ends
    renumbered,      // another device is at its address, or the PF is at another address
    gone,            // the PF is nowhere on this host
    unknown          // the PF could not be observed
};

}  // namespace vfmgr
