// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/sources.hpp"

#include <fmt/format.h>

#include <array>

namespace vfmgr::checks {
namespace {

using Words = std::span<std::string_view const>;

// Options of the kernel's build that the rules use.
constexpr auto options = std::to_array<std::string_view>(
    {"CONFIG_INFINIBAND", "CONFIG_RDMA_RXE", "CONFIG_RDMA_SIW", "CONFIG_MLX5_", "CONFIG_MLX4_",
     "CONFIG_VFIO", "CONFIG_INTEL_IOMMU", "CONFIG_AMD_IOMMU", "CONFIG_IOMMUFD", "CONFIG_PCI_IOV",
     "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY", "CONFIG_MODVERSIONS",
     "CONFIG_CC_VERSION_TEXT", "CONFIG_DCB"});

constexpr auto modules = std::to_array<std::string_view>(
    {"/rdma_rxe.ko",         "/siw.ko",           "/mlx5_core.ko",  "/mlx5_ib.ko",
     "/mlx4_core.ko",        "/mlx4_ib.ko",       "/ib_core.ko",    "/ib_uverbs.ko",
     "/rdma_cm.ko",          "/rdma_ucm.ko",      "/ib_ipoib.ko",   "/vfio-pci.ko",
     "/vfio_iommu_type1.ko", "/mlx5-vfio-pci.ko", "/ib_umad.ko",    "/nvidia.ko",
     "/nvidia-peermem.ko",   "/nv_peer_mem.ko",   "/nvidia-p2p.ko", "/udp_tunnel.ko",
     "/mst_pciconf.ko",      "/nvme-rdma.ko",     "/nvmet-rdma.ko", "/ib_srp.ko",
     "/ib_iser.ko",          "/rpcrdma.ko"});

// A NetworkManager profile holds passwords: keeps only its identity and what it does to VFs.
constexpr std::array<std::string_view, 6> network_manager{
    "[sriov]", "total-vfs", "vf.", "interface-name=", "id=", "mac-address="};
// ifcfg-* may hold keys of wireless networks, crontabs anything.
constexpr std::array<std::string_view, 3> ifcfg{"SRIOV_", "DEVICE=", "NAME="};
constexpr std::array<std::string_view, 3> ifupdown{"iface ", "sriov_numvfs", "mlx5_num_vfs"};
constexpr std::array<std::string_view, 2> vf_counts{"sriov_numvfs", "mlx5_num_vfs"};
// Units hold passwords in many places; lines that make VFs and RDMA links have these words.
constexpr std::array<std::string_view, 3> makers{"sriov", "mlx5_num_vfs", "rdma link add"};
constexpr std::array<std::string_view, 5> unit_secrets{"Environment", "PassEnvironment",
                                                       "SetCredential", "LoadCredential", "#"};
// Keeps from libvirt's network only which VFs it hands out. OpenStack's files hold passwords.
constexpr std::array<std::string_view, 4> hostdev_network{"<name>", "<forward ", "<pf ",
                                                          "<address type='pci'"};
constexpr std::array<std::string_view, 1> neutron{"physical_device_mappings"};
constexpr std::array<std::string_view, 2> nova{"device_spec", "passthrough_whitelist"};
constexpr std::array<std::string_view, 1> effective{"CapEff:"};
constexpr std::array<std::string_view, 1> all_memory{"MemTotal:"};
constexpr std::array<std::string_view, 1> remapped{"IR-"};
constexpr std::array<std::string_view, 1> peer_memory{"ib_register_peer_memory_client"};
constexpr std::array<std::string_view, 1> dkms_sources{"/usr/src/nvidia"};
constexpr std::array<std::string_view, 1> peermem{"peermem"};
constexpr std::array<std::string_view, 4> opensm{"virt_enabled", "guid ", "log_file ", "qos "};
// Destination and mask are zeros: keeps only these of many routes.
constexpr std::array<std::string_view, 1> default_route4{"\t00000000\t"};
constexpr std::array<std::string_view, 1> default_route6{"00000000000000000000000000000000 00 "};
constexpr std::string_view nvidia = "/sys/module/nvidia";
constexpr std::string_view gids = "/sys/class/infiniband/*/ports/*/gids/*";
constexpr std::string_view zero_gid = "0000:0000:0000:0000:0000:0000:0000:0000\n";

constexpr std::array files{
    // The machine and its kernel.
    FileSource{"/proc/cmdline"},
    FileSource{"/proc/cpuinfo", 8192},
    FileSource{"/proc/interrupts", 1 << 14, remapped},
    FileSource{"/proc/meminfo"},
    FileSource{"/proc/modules", 1 << 16},
    FileSource{"/proc/self/limits"},
    FileSource{"/proc/self/status", 256, effective},
    FileSource{"/sys/kernel/mm/hugepages/*/nr_hugepages"},
    FileSource{"/sys/kernel/mm/hugepages/*/free_hugepages"},
    FileSource{"/sys/devices/system/node/node*/cpulist"},
    FileSource{"/sys/devices/system/node/node*/meminfo", 256, all_memory},
    FileSource{"/proc/sys/kernel/osrelease"},
    FileSource{"/proc/sys/kernel/modules_disabled"},
    FileSource{"/proc/sys/kernel/dmesg_restrict"},
    FileSource{"/proc/version"},
    FileSource{"/boot/config-%r", 1 << 16, options},
    FileSource{"/lib/modules/%r/modules.dep", 1 << 16, modules},
    FileSource{"/lib/modules/%r/modules.builtin", 1 << 16, modules},
    // Whether modules can be built, and for which stack.
    FileSource{"/lib/modules/%r/modules.symbols", 4096, peer_memory},
    FileSource{"/lib/modules/%r/build/Makefile", 256},
    FileSource{"/lib/modules/%r/build/Module.symvers", 4096, peer_memory, {}, nvidia},
    FileSource{"/usr/src/ofa_kernel/default/Module.symvers", 4096, peer_memory},
    FileSource{"/usr/src/ofa_kernel/%r/Module.symvers", 4096, peer_memory},
    FileSource{"/usr/src/ofa_kernel/*/%r/Module.symvers", 4096, peer_memory},
    FileSource{"/usr/lib/gcc/*/*/cc1", 4},  // only whether it exists
    FileSource{"/usr/libexec/gcc/*/*/cc1", 4},
    FileSource{"/usr/bin/mstconfig", 4},
    FileSource{"/usr/bin/mlxconfig", 4},
    FileSource{"/usr/sbin/akmods", 4},
    FileSource{"/var/lib/dkms/mok.pub", 4},
    FileSource{"/var/lib/shim-signed/mok/MOK.der", 4},
    FileSource{"/var/lib/dpkg/info/nvidia*dkms*.list", 512, dkms_sources},
    FileSource{"/sys/firmware/devicetree/base/compatible"},
    FileSource{"/sys/devices/system/node/has_cpu"},
    FileSource{"/sys/devices/virtual/dmi/id/sys_vendor"},
    FileSource{"/sys/devices/virtual/dmi/id/product_name"},
    FileSource{"/sys/devices/virtual/dmi/id/bios_version"},
    FileSource{"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"},
    FileSource{"/sys/kernel/security/lockdown"},
    // Loaded modules.
    FileSource{"/sys/module/*/version", 256},
    FileSource{"/sys/module/*/srcversion", 256},
    FileSource{"/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"},
    FileSource{"/sys/module/vfio_pci/parameters/*"},
    FileSource{"/sys/module/mlx4_core/parameters/num_vfs"},
    FileSource{"/sys/kernel/mm/memory_peers/*/version"},
    FileSource{"/proc/kallsyms", 4096, peer_memory, {}, nvidia},
    FileSource{"/proc/driver/nvidia/version"},
    FileSource{"/proc/driver/nvidia/params", 8192},
    // PCI. Not sriov_numvfs and not driver_override: both take the device's lock, and hang while a
    // resize hangs (vfmgr/kernel/KERNEL.md#locks).
    FileSource{"/sys/bus/pci/devices/*/vendor"},
    FileSource{"/sys/bus/pci/devices/*/device"},
    FileSource{"/sys/bus/pci/devices/*/subsystem_vendor"},
    FileSource{"/sys/bus/pci/devices/*/subsystem_device"},
    FileSource{"/sys/bus/pci/devices/*/class"},
    FileSource{"/sys/bus/pci/devices/*/revision"},
    FileSource{"/sys/bus/pci/devices/*/numa_node"},
    FileSource{"/sys/bus/pci/devices/*/sriov_totalvfs"},
    FileSource{"/sys/bus/pci/devices/*/current_link_speed"},
    FileSource{"/sys/bus/pci/devices/*/current_link_width"},
    FileSource{"/sys/bus/pci/devices/*/max_link_speed"},
    FileSource{"/sys/bus/pci/devices/*/max_link_width"},
    FileSource{"/sys/bus/pci/devices/*/resource"},
    // Network and RDMA devices.
    FileSource{"/sys/class/net/*/address"},
    FileSource{"/sys/class/net/*/mtu"},
    FileSource{"/sys/class/net/*/flags"},
    FileSource{"/sys/class/net/*/carrier"},
    FileSource{"/sys/class/net/*/operstate"},
    FileSource{"/sys/class/net/*/speed"},
    FileSource{"/sys/class/net/*/type"},
    FileSource{"/sys/class/net/*/ifindex"},
    FileSource{"/sys/class/net/*/iflink"},
    FileSource{"/sys/class/net/*/dev_port"},
    FileSource{"/sys/class/net/*/phys_port_name"},
    FileSource{"/sys/class/net/bonding_masters"},
    FileSource{"/sys/class/infiniband/*/node_guid"},
    FileSource{"/sys/class/infiniband/*/sys_image_guid"},
    FileSource{"/sys/class/infiniband/*/node_type"},
    FileSource{"/sys/class/infiniband/*/fw_ver"},
    FileSource{"/sys/class/infiniband/*/hca_type"},
    FileSource{"/sys/class/infiniband/*/board_id"},
    FileSource{"/sys/class/infiniband/*/parent"},
    FileSource{"/sys/class/infiniband/*/ports/*/state"},
    FileSource{"/sys/class/infiniband/*/ports/*/phys_state"},
    FileSource{"/sys/class/infiniband/*/ports/*/link_layer"},
    FileSource{"/sys/class/infiniband/*/ports/*/rate"},
    FileSource{"/sys/class/infiniband/*/ports/*/lid"},
    FileSource{"/sys/class/infiniband/*/ports/*/sm_lid"},
    FileSource{gids, 64, {}, zero_gid},
    // A SoftRoCE port has room for 1024 GIDs.
    FileSource{"/sys/class/infiniband/*/ports/*/gid_attrs/types/*", 64, {}, {}, {}, {}, gids},
    FileSource{"/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*", 64, {}, {}, {}, {}, gids},
    FileSource{"/sys/class/infiniband/*/ports/*/hw_counters/out_of_sequence", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/hw_counters/packet_seq_err", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/hw_counters/rnr_nak_retry_err", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/hw_counters/np_cnp_sent", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/hw_counters/rp_cnp_handled", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/counters/port_rcv_packets", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/counters/port_xmit_packets", 64},
    FileSource{"/sys/class/infiniband/*/ports/*/counters/port_rcv_errors", 64},
    FileSource{"/sys/class/infiniband/*/tc/*/traffic_class", 256},
    FileSource{"/sys/class/net/*/ecn/roce_np/enable/*", 64},
    FileSource{"/sys/class/net/*/ecn/roce_rp/enable/*", 64},
    FileSource{"/proc/net/route", 1 << 14, default_route4},
    FileSource{"/proc/net/ipv6_route", 1 << 14, default_route6},
    // Other programs' configuration.
    FileSource{"/etc/debian_version"},
    FileSource{"/etc/redhat-release"},
    FileSource{"/etc/default/grub"},
    FileSource{"/etc/kernel/cmdline"},
    FileSource{"/etc/modules"},
    FileSource{"/etc/modules-load.d/*.conf"},
    FileSource{"/usr/lib/modules-load.d/*.conf"},
    FileSource{"/usr/lib/modprobe.d/*.conf", 4096, peermem},
    FileSource{"/usr/lib/systemd/system/openibd.service.d/*.conf"},
    FileSource{"/etc/infiniband/openib.conf"},
    FileSource{"/etc/opensm/opensm.conf", 4096, opensm},
    FileSource{"/etc/rdma/opensm.conf", 4096, opensm},  // Red Hat's place
    FileSource{"/etc/os-release"},
    FileSource{"/etc/rdma/rdma.conf"},
};

// Configuration that shows which other programs make VFs.
constexpr std::array owner_files{
    FileSource{"/etc/modprobe.d/*.conf"},
    FileSource{"/etc/netplan/*.yaml", 1 << 14},
    FileSource{"/etc/network/interfaces"},
    FileSource{
        .pattern = "/etc/network/interfaces.d/*", .lines_with = ifupdown, .keeps_numbers = true},
    FileSource{.pattern = "/etc/NetworkManager/system-connections/*",
               .lines_with = network_manager,
               .keeps_numbers = true},
    FileSource{.pattern = "/run/NetworkManager/system-connections/*",
               .lines_with = network_manager,
               .keeps_numbers = true},
    FileSource{.pattern = "/etc/sysconfig/network-scripts/ifcfg-*",
               .lines_with = ifcfg,
               .keeps_numbers = true},
    FileSource{.pattern = "/etc/crontab", .lines_with = vf_counts, .keeps_numbers = true},
    FileSource{.pattern = "/etc/rc.local", .lines_with = vf_counts, .keeps_numbers = true},
    FileSource{"/etc/sriov-operator/sriov-interface-config.yaml", 1 << 16},
    FileSource{"/etc/sriov-operator/pci/*", 1 << 14},
    FileSource{"/etc/systemd/network/*.link"},
    FileSource{"/etc/systemd/network/*.network"},
    FileSource{"/etc/systemd/network/*.d/*.conf"},
    FileSource{"/run/systemd/network/*.link"},
    FileSource{"/run/systemd/network/*.network"},
    FileSource{"/usr/local/lib/systemd/network/*.link"},
    FileSource{"/usr/local/lib/systemd/network/*.network"},
    FileSource{"/usr/lib/systemd/network/*.link"},
    FileSource{"/usr/lib/systemd/network/*.network"},
    FileSource{.pattern = "/etc/libvirt/qemu/networks/*.xml",
               .lines_with = hostdev_network,
               .keeps_numbers = true},
    FileSource{.pattern = "/etc/neutron/plugins/ml2/sriov_agent.ini",
               .lines_with = neutron,
               .keeps_numbers = true},
    FileSource{.pattern = "/etc/kolla/neutron-sriov-agent/sriov_agent.ini",
               .lines_with = neutron,
               .keeps_numbers = true},
    FileSource{.pattern = "/etc/nova/nova.conf", .lines_with = nova, .keeps_numbers = true},
    FileSource{
        .pattern = "/etc/kolla/nova-compute/nova.conf", .lines_with = nova, .keeps_numbers = true},
    FileSource{"/etc/udev/rules.d/*.rules", 1 << 14},
    FileSource{.pattern = "/etc/systemd/system/*.service",
               .lines_with = makers,
               .lines_but_not = unit_secrets,
               .keeps_numbers = true},
};

constexpr auto links = std::to_array<std::string_view>({
    "/sys/bus/pci/devices/*",  // its place in the tree
    "/sys/bus/pci/devices/*/driver",
    "/sys/bus/pci/devices/*/iommu_group",
    "/sys/bus/pci/devices/*/physfn",
    "/sys/bus/pci/devices/*/virtfn*",
    "/sys/class/net/*/device",
    "/sys/class/net/*/master",
    "/sys/class/net/*/lower_*",  // what a VLAN, a bond or a bridge is on
    "/sys/class/infiniband/*/device",
    "/sys/class/iommu/*",
    "/lib/modules/%r/build",
    "/usr/lib/*/libvirt.so.0",  // its version
    "/usr/lib64/libvirt.so.0",
});

constexpr auto folders = std::to_array<std::string_view>({
    "/sys/firmware/acpi/tables",
    "/sys/kernel/iommu_groups",
    "/sys/class/iommu",
    "/sys/class/infiniband",
    "/sys/class/net",
    "/sys/bus/pci/devices",
    "/sys/bus/pci/devices/*/net",
    "/sys/bus/pci/devices/*/infiniband",
    "/sys/module",
    "/dev",
    "/dev/vfio",
    "/dev/infiniband",
    "/sys/kernel/mm/memory_peers",
    "/var/lib/dkms/*/*",  // modules, versions, and what they are built for
    "/var/lib/dkms",
    "/opt/mellanox/mlnx-fw-updater",
    "/var/lib/kubelet",
    "/etc/kubernetes",
    "/etc/NetworkManager/system-connections",  // only root may list it
    "/etc/systemd/system/*.wants",
    "/etc/systemd/system/*.requires",
});

constexpr auto units = std::to_array<std::string_view>(
    {"libvirtd.service", "libvirtd.socket", "virtqemud.service", "virtqemud.socket",
     "NetworkManager.service", "systemd-networkd.service", "opensm.service", "opensmd.service",
     "openibd.service", "mst.service", "nv_peer_mem.service", "vfmgrd.service"});

// systemd.unit(5), the system's search path; generators make units of /etc/init.d.
constexpr auto folders_of_units = std::to_array<std::string_view>(
    {"/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator.early",
     "/run/systemd/generator", "/run/systemd/generator.late", "/usr/local/lib/systemd/system",
     "/usr/lib/systemd/system", "/lib/systemd/system"});

constexpr std::array commands{
    // What reaches SoftRoCE. Only where nftables is in use: the query would load it elsewhere.
    CommandSource{"nft -t list ruleset", "/sys/module/nf_tables", "/sys/module/rdma_rxe"},
    CommandSource{own_links_query, "/run/vfmgr/vfmgr.sock", "/sys/class/infiniband"},
    CommandSource{"ofed_info -s", "/usr/bin/ofed_info"},
};

}  // namespace

constinit std::span<FileSource const> const file_sources = files;
constinit std::span<FileSource const> const owner_sources = owner_files;
constinit std::span<std::string_view const> const link_sources = links;
constinit std::span<std::string_view const> const folder_sources = folders;
constinit std::span<CommandSource const> const command_sources = commands;
constinit std::span<std::string_view const> const unit_sources = units;
constinit std::span<std::string_view const> const unit_folders = folders_of_units;

std::string unit_question(std::vector<std::string_view> const& names) {
    return fmt::format("systemctl show --property=Id,LoadState,ActiveState,UnitFileState {}",
                       fmt::join(names, " "));
}

bool keeps_configuration_of(std::string_view pci_class) {
    return pci_class.starts_with("0x02") || pci_class.starts_with("0x03") ||
           pci_class.starts_with("0x0604");
}

std::string with_release(std::string_view text, std::string_view release) {
    constexpr std::string_view mark = "%r";
    std::string out(text);
    if (auto const at = out.find(mark); at != out.npos) out.replace(at, mark.size(), release);
    return out;
}

}  // namespace vfmgr::checks
