// SPDX-License-Identifier: Apache-2.0
// Which devices a fact is about. A PCI function, its netdevs and its RDMA devices are one device;
// its PF or VFs and the ports above it are its relatives. A fact that can't be placed concerns all.
// Values; one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// The device that a fact's name names: "ens1" of "/sys/class/net/ens1/mtu", "0000:3b:00.0" of
// "mstconfig -e -d 0000:3b:00.0 q", "mlx5_0" of "RDMA_NLDEV_CMD_PORT_GET mlx5_0". Empty: the
// machine.
[[nodiscard]] std::string device_in(std::string_view source);

class Relatives {
  public:
    // Reads the machine without notes.
    explicit Relatives(Machine const& machine);

    // True if the fact may decide what is true of the subject of a finding: "0000:3b:00.0",
    // "ens1", "mlx5_0/1"; any other subject rests on every fact.
    [[nodiscard]] bool concerns(std::string_view source, std::string_view subject) const;
    // True for two subjects that are one device or relatives.
    [[nodiscard]] bool related(std::string_view one, std::string_view other) const;

  private:
    struct Device {
        std::set<PciAddress> functions;  // its own
        std::set<PciAddress> relatives;  // PF, VFs, ports above
        bool placed = true;              // false: its PCI function is unread
    };
    void add_functions(std::vector<PciDevice> const& all);
    void add_netdevs(Machine const& machine, std::vector<MachineNetdev> const& all);
    void add_rdma_devices(std::vector<MachineRdmaDevice> const& all);
    [[nodiscard]] Device const* find(std::string_view name) const;

    std::map<std::string, Device, std::less<>> devices_;
};

}  // namespace vfmgr::checks
