// SPDX-License-Identifier: Apache-2.0
// The kernel's half of RDMA: its modules, their origin, and whether they can be built and loaded.
#include "vfmgr/checks/rules/stack.hpp"

#include <array>

#include "vfmgr/checks/rule.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::array stack{
    Rule{"stack.secure_boot", "Secure Boot accepts the RDMA and GPU modules",
         "UEFI 2.10, 3.3 (SecureBoot); Linux kernel/module/signing.c; dkms(8), mok_certificate; "
         "setup guide, Secure Boot",
         AppliesTo::both, judge_secure_boot},
    Rule{"stack.headers", "Modules can be built for this kernel",
         "Linux Documentation/kbuild/modules.rst; setup guide, DOCA prerequisites", AppliesTo::both,
         judge_headers},
    Rule{"stack.dkms", "DKMS modules are built for this kernel",
         "dkms(8), the tree in /var/lib/dkms", AppliesTo::both, judge_dkms},
    Rule{"stack.symbols", "Modules match the loaded RDMA stack",
         "Linux kernel/module/version.c; recordings of nvidia_peermem, bluerdma and rdma_rxe",
         AppliesTo::both, judge_symbols},
    Rule{"stack.driver", "Each ConnectX has its driver and an RDMA device",
         "Linux drivers/infiniband/hw/mlx5, devlink-params.rst (enable_roce); a recording of an "
         "empty /sys/class/infiniband",
         AppliesTo::both, judge_connectx_driver},
    Rule{"stack.core", "The RDMA core is loaded",
         "rdma-core kernel-boot; Holoscan guide, Load MOFED drivers; Linux "
         "drivers/infiniband/Kconfig",
         AppliesTo::both, judge_rdma_core},
    Rule{"stack.ofed", "OFED is new enough, and is the stack that runs",
         "Holoscan guide, Install MOFED drivers; ethtool -i recordings of OFED and inbox drivers",
         AppliesTo::both, judge_ofed},
    Rule{"stack.lockdown", "Firmware tools can reach the NIC",
         "kernel_lockdown(7); a recording of mstconfig on a locked-down host", AppliesTo::host,
         judge_lockdown},
    Rule{"stack.mst", "A firmware tool is installed", "mstconfig(1); setup guide, mst start",
         AppliesTo::host, judge_firmware_tools},
    Rule{"stack.openibd", "openibd does not remove VFs that VMs use",
         "MLNX_OFED openibd: restart unloads mlx5_core; systemd.service(5), ExecStop and "
         "ExecCondition",
         AppliesTo::host, judge_openibd},
    Rule{"stack.fw_updater", "Firmware is not changed at boot",
         "MLNX_OFED openib.conf, RUN_FW_UPDATER_ONBOOT; setup guide, mlnx-fw-updater",
         AppliesTo::host, judge_firmware_updater},
};

}  // namespace

std::span<Rule const> stack_rules() {
    return stack;
}

}  // namespace vfmgr::checks
