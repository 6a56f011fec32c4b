// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/wanted.hpp"

#include <array>

namespace vfmgr::checks {
namespace {

using Words = std::span<std::string_view const>;

// Of the kernel's build: what the rules ask for.
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
     "/nvidia-peermem.ko",   "/nv_peer_mem.ko",   "/nvidia-p2p.ko", "/udp_tunnel.ko"});

// A NetworkManager profile holds passwords: only what says whose it is and what it does to VFs.
constexpr std::array<std::string_view, 6> network_manager{
    "[sriov]", "total-vfs", "vf.", "interface-name=", "id=", "mac-address="};
// ifcfg-* may hold keys of wireless networks, crontabs anything.
constexpr std::array<std::string_view, 3> ifcfg{"SRIOV_", "DEVICE=", "NAME="};
constexpr std::array<std::string_view, 3> ifupdown{"iface ", "sriov_numvfs", "mlx5_num_vfs"};
constexpr std::array<std::string_view, 2> vf_counts{"sriov_numvfs", "mlx5_num_vfs"};
// Units hold passwords in many places; what makes VFs and RDMA links says so in these words.
constexpr std::array<std::string_view, 3> makers{"sriov", "mlx5_num_vfs", "rdma link add"};
constexpr std::array<std::string_view, 5> unit_secrets{"Environment", "PassEnvironment",
                                                       "SetCredential", "LoadCredential", "#"};
constexpr std::array<std::string_view, 1> effective{"CapEff:"};
constexpr std::array<std::string_view, 1> all_memory{"MemTotal:"};
constexpr std::array<std::string_view, 1> remapped{"IR-"};
constexpr std::array<std::string_view, 1> peer_memory{"ib_register_peer_memory_client"};
constexpr std::array<std::string_view, 1> dkms_sources{"/usr/src/nvidia"};
constexpr std::array<std::string_view, 1> peermem{"peermem"};
constexpr std::array<std::string_view, 4> opensm{"virt_enabled", "guid ", "log_file ", "qos "};
// Destination and mask are zeros; of many routes only these.
constexpr std::array<std::string_view, 1> default_route4{"\t00000000\t"};
constexpr std::array<std::string_view, 1> default_route6{"00000000000000000000000000000000 00 "};
constexpr std::string_view nvidia = "/sys/module/nvidia";
constexpr std::string_view gids = "/sys/class/infiniband/*/ports/*/gids/*";
constexpr std::string_view zero_gid = "0000:0000:0000:0000:0000:0000:0000:0000\n";

constexpr std::array files{
    // The machine and its kernel.
    WantedFile{"/proc/cmdline"},
    WantedFile{"/proc/cpuinfo", 8192},
    WantedFile{"/proc/interrupts", 1 << 14, remapped},
    WantedFile{"/proc/meminfo"},
    WantedFile{"/proc/modules", 1 << 16},
    WantedFile{"/proc/self/limits"},
    WantedFile{"/proc/self/status", 256, effective},
    WantedFile{"/sys/kernel/mm/hugepages/*/nr_hugepages"},
    WantedFile{"/sys/kernel/mm/hugepages/*/free_hugepages"},
    WantedFile{"/sys/devices/system/node/node*/cpulist"},
    WantedFile{"/sys/devices/system/node/node*/meminfo", 256, all_memory},
    WantedFile{"/proc/sys/kernel/osrelease"},
    WantedFile{"/proc/sys/kernel/modules_disabled"},
    WantedFile{"/proc/sys/kernel/dmesg_restrict"},
    WantedFile{"/proc/version"},
    WantedFile{"/boot/config-%r", 1 << 16, options},
    WantedFile{"/lib/modules/%r/modules.dep", 1 << 16, modules},
    WantedFile{"/lib/modules/%r/modules.builtin", 1 << 16, modules},
    // Whether modules can be built, and of which stack they are.
    WantedFile{"/lib/modules/%r/modules.symbols", 4096, peer_memory},
    WantedFile{"/lib/modules/%r/build/Makefile", 256},
    WantedFile{"/lib/modules/%r/build/Module.symvers", 4096, peer_memory, {}, nvidia},
    WantedFile{"/usr/src/ofa_kernel/default/Module.symvers", 4096, peer_memory},
    WantedFile{"/usr/src/ofa_kernel/%r/Module.symvers", 4096, peer_memory},
    WantedFile{"/usr/src/ofa_kernel/*/%r/Module.symvers", 4096, peer_memory},
    WantedFile{"/usr/lib/gcc/*/*/cc1", 4},  // that it is there
    WantedFile{"/usr/libexec/gcc/*/*/cc1", 4},
    WantedFile{"/usr/bin/mstconfig", 4},
    WantedFile{"/usr/bin/mlxconfig", 4},
    WantedFile{"/usr/sbin/akmods", 4},
    WantedFile{"/var/lib/dkms/mok.pub", 4},
    WantedFile{"/var/lib/shim-signed/mok/MOK.der", 4},
    WantedFile{"/var/lib/dpkg/info/nvidia*dkms*.list", 512, dkms_sources},
    WantedFile{"/sys/firmware/devicetree/base/compatible"},
    WantedFile{"/sys/devices/system/node/has_cpu"},
    WantedFile{"/sys/devices/virtual/dmi/id/sys_vendor"},
    WantedFile{"/sys/devices/virtual/dmi/id/product_name"},
    WantedFile{"/sys/devices/virtual/dmi/id/bios_version"},
    WantedFile{"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"},
    WantedFile{"/sys/kernel/security/lockdown"},
    // Modules that are loaded.
    WantedFile{"/sys/module/*/version", 256},
    WantedFile{"/sys/module/*/srcversion", 256},
    WantedFile{"/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"},
    WantedFile{"/sys/module/vfio_pci/parameters/*"},
    WantedFile{"/sys/kernel/mm/memory_peers/*/version"},
    WantedFile{"/proc/kallsyms", 4096, peer_memory, {}, nvidia},
    WantedFile{"/proc/driver/nvidia/version"},
    WantedFile{"/proc/driver/nvidia/params", 8192},
    // PCI. Not sriov_numvfs and not driver_override: both take the device's lock, and hang while a
    // resize hangs (kernel-and-libvirt.md, 1).
    WantedFile{"/sys/bus/pci/devices/*/vendor"},
    WantedFile{"/sys/bus/pci/devices/*/device"},
    WantedFile{"/sys/bus/pci/devices/*/subsystem_vendor"},
    WantedFile{"/sys/bus/pci/devices/*/subsystem_device"},
    WantedFile{"/sys/bus/pci/devices/*/class"},
    WantedFile{"/sys/bus/pci/devices/*/revision"},
    WantedFile{"/sys/bus/pci/devices/*/numa_node"},
    WantedFile{"/sys/bus/pci/devices/*/sriov_totalvfs"},
    WantedFile{"/sys/bus/pci/devices/*/current_link_speed"},
    WantedFile{"/sys/bus/pci/devices/*/current_link_width"},
    WantedFile{"/sys/bus/pci/devices/*/max_link_speed"},
    WantedFile{"/sys/bus/pci/devices/*/max_link_width"},
    WantedFile{"/sys/bus/pci/devices/*/resource"},
    // Network and RDMA devices.
    WantedFile{"/sys/class/net/*/address"},
    WantedFile{"/sys/class/net/*/mtu"},
    WantedFile{"/sys/class/net/*/flags"},
    WantedFile{"/sys/class/net/*/carrier"},
    WantedFile{"/sys/class/net/*/operstate"},
    WantedFile{"/sys/class/net/*/speed"},
    WantedFile{"/sys/class/net/*/type"},
    WantedFile{"/sys/class/net/*/ifindex"},
    WantedFile{"/sys/class/net/*/dev_port"},
    WantedFile{"/sys/class/net/*/phys_port_name"},
    WantedFile{"/sys/class/net/bonding_masters"},
    WantedFile{"/sys/class/infiniband/*/node_guid"},
    WantedFile{"/sys/class/infiniband/*/sys_image_guid"},
    WantedFile{"/sys/class/infiniband/*/node_type"},
    WantedFile{"/sys/class/infiniband/*/fw_ver"},
    WantedFile{"/sys/class/infiniband/*/hca_type"},
    WantedFile{"/sys/class/infiniband/*/board_id"},
    WantedFile{"/sys/class/infiniband/*/parent"},
    WantedFile{"/sys/class/infiniband/*/ports/*/state"},
    WantedFile{"/sys/class/infiniband/*/ports/*/phys_state"},
    WantedFile{"/sys/class/infiniband/*/ports/*/link_layer"},
    WantedFile{"/sys/class/infiniband/*/ports/*/rate"},
    WantedFile{"/sys/class/infiniband/*/ports/*/lid"},
    WantedFile{"/sys/class/infiniband/*/ports/*/sm_lid"},
    WantedFile{gids, 64, {}, zero_gid},
    // A SoftRoCE port has room for 1024 GIDs.
    WantedFile{"/sys/class/infiniband/*/ports/*/gid_attrs/types/*", 64, {}, {}, {}, {}, gids},
    WantedFile{"/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*", 64, {}, {}, {}, {}, gids},
    WantedFile{"/sys/class/infiniband/*/ports/*/hw_counters/out_of_sequence", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/hw_counters/packet_seq_err", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/hw_counters/rnr_nak_retry_err", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/hw_counters/np_cnp_sent", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/hw_counters/rp_cnp_handled", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/counters/port_rcv_packets", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/counters/port_xmit_packets", 64},
    WantedFile{"/sys/class/infiniband/*/ports/*/counters/port_rcv_errors", 64},
    WantedFile{"/sys/class/infiniband/*/tc/*/traffic_class", 256},
    WantedFile{"/sys/class/net/*/ecn/roce_np/enable/*", 64},
    WantedFile{"/sys/class/net/*/ecn/roce_rp/enable/*", 64},
    WantedFile{"/proc/net/route", 1 << 14, default_route4},
    WantedFile{"/proc/net/ipv6_route", 1 << 14, default_route6},
    // Who else has a hand in it.
    WantedFile{"/etc/debian_version"},
    WantedFile{"/etc/redhat-release"},
    WantedFile{"/etc/default/grub"},
    WantedFile{"/etc/kernel/cmdline"},
    WantedFile{"/etc/modules"},
    WantedFile{"/etc/modules-load.d/*.conf"},
    WantedFile{"/usr/lib/modules-load.d/*.conf"},
    WantedFile{"/etc/modprobe.d/*.conf"},
    WantedFile{"/usr/lib/modprobe.d/*.conf", 4096, peermem},
    WantedFile{"/etc/netplan/*.yaml", 1 << 14},
    WantedFile{"/etc/network/interfaces"},
    WantedFile{
        .pattern = "/etc/network/interfaces.d/*", .lines_with = ifupdown, .keeps_numbers = true},
    WantedFile{.pattern = "/etc/NetworkManager/system-connections/*",
               .lines_with = network_manager,
               .keeps_numbers = true},
    WantedFile{.pattern = "/run/NetworkManager/system-connections/*",
               .lines_with = network_manager,
               .keeps_numbers = true},
    WantedFile{.pattern = "/etc/sysconfig/network-scripts/ifcfg-*",
               .lines_with = ifcfg,
               .keeps_numbers = true},
    WantedFile{.pattern = "/etc/crontab", .lines_with = vf_counts, .keeps_numbers = true},
    WantedFile{.pattern = "/etc/rc.local", .lines_with = vf_counts, .keeps_numbers = true},
    WantedFile{"/etc/sriov-operator/sriov-interface-config.yaml", 1 << 16},
    WantedFile{"/etc/sriov-operator/pci/*", 1 << 14},
    WantedFile{"/etc/systemd/network/*.link"},
    WantedFile{"/etc/systemd/network/*.network"},
    WantedFile{"/etc/systemd/network/*.d/*.conf"},
    WantedFile{"/run/systemd/network/*.link"},
    WantedFile{"/run/systemd/network/*.network"},
    WantedFile{"/etc/udev/rules.d/*.rules", 1 << 14},
    WantedFile{.pattern = "/etc/systemd/system/*.service",
               .lines_with = makers,
               .lines_but_not = unit_secrets,
               .keeps_numbers = true},
    WantedFile{"/usr/lib/systemd/system/openibd.service.d/*.conf"},
    WantedFile{"/etc/infiniband/openib.conf"},
    WantedFile{"/etc/opensm/opensm.conf", 4096, opensm},
    WantedFile{"/etc/rdma/opensm.conf", 4096, opensm},  // Red Hat's place
    WantedFile{"/etc/os-release"},
    WantedFile{"/etc/rdma/rdma.conf"},
};

constexpr auto links = std::to_array<std::string_view>({
    "/sys/bus/pci/devices/*",  // where it is in the tree
    "/sys/bus/pci/devices/*/driver",
    "/sys/bus/pci/devices/*/iommu_group",
    "/sys/bus/pci/devices/*/physfn",
    "/sys/bus/pci/devices/*/virtfn*",
    "/sys/class/net/*/device",
    "/sys/class/net/*/master",
    "/sys/class/net/*/lower_*",  // of a VLAN, a bond or a bridge: what it is on
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
    "/etc/NetworkManager/system-connections",  // which only root may list
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

auto const& commands() {
    static std::array const all{
        // What reaches SoftRoCE. Only where nftables is in use: asking would load it elsewhere.
        WantedCommand{
            {"nft", "-t", "list", "ruleset"}, "/sys/module/nf_tables", "/sys/module/rdma_rxe"},
        // Which links vfmgrd makes again at boot: they are in its store, which is nobody else's.
        WantedCommand{{"vfctl", "-q", "-o", "csv", "--no-headers", "rdma", "link", "list"},
                      "/run/vfmgr/vfmgr.sock",
                      "/sys/class/infiniband"},
        WantedCommand{{"ofed_info", "-s"}, "/usr/bin/ofed_info"},
    };
    return all;
}

}  // namespace

std::span<WantedFile const> wanted_files() {
    return files;
}

std::span<std::string_view const> wanted_links() {
    return links;
}

std::span<std::string_view const> wanted_folders() {
    return folders;
}

std::span<std::string_view const> wanted_units() {
    return units;
}

std::span<std::string_view const> unit_folders() {
    return folders_of_units;
}

std::vector<std::string> unit_question(std::vector<std::string> const& names) {
    std::vector<std::string> words{"systemctl", "show",
                                   "--property=Id,LoadState,ActiveState,UnitFileState"};
    words.insert(words.end(), names.begin(), names.end());
    return words;
}

std::span<WantedCommand const> wanted_commands() {
    return commands();
}

WantedCommand const& wanted_journal() {
    static WantedCommand const command{
        {"journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic"},
        "/run/systemd/journal"};
    return command;
}

bool wants_configuration(std::string_view pci_class) {
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
