// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/faults.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "vfmgr/rdma/counters.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::size_t record_bytes_max = 8192;  // CONSOLE_EXT_LOG_MAX
constexpr int records_max = 2000;               // more than this is a flooded log

bool names_any(std::string_view line, std::vector<std::string> const& names) {
    return std::ranges::any_of(
        names, [&](std::string const& name) { return line.find(name) != line.npos; });
}

}  // namespace

std::optional<std::string_view> text_of_record(std::string_view record) {
    auto const begin = record.find(';');
    if (begin == record.npos) return std::nullopt;
    auto const text = record.substr(begin + 1);
    return text.substr(0, text.find('\n'));
}

KernelLog KernelLog::follow(std::string const& path) {
    KernelLog log;
    log.log_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (log.log_) ::lseek(log.log_.get(), 0, SEEK_END);
    return log;
}

std::optional<LoggedFault> KernelLog::find(std::vector<std::string> const& names) {
    std::array<char, record_bytes_max> room{};
    for (int i = 0; log_ && i < records_max; ++i) {
        auto const got = ::read(log_.get(), room.data(), room.size());
        if (got < 0 && errno == EPIPE) continue;  // the next record has been overwritten
        if (got <= 0) break;
        auto const line = text_of_record({room.data(), static_cast<std::size_t>(got)});
        auto const fault = line ? log_fault(*line) : std::nullopt;
        if (fault && (fault->whole_machine || names_any(*line, names)))
            return LoggedFault{std::string(*line), *fault};
    }
    return std::nullopt;
}

std::vector<std::string> names_in_log(std::string const& ifname, std::string const& sysfs) {
    namespace fs = std::filesystem;
    std::vector<std::string> names{ifname + ":", ifname + " "};
    std::error_code error;
    auto const device = fs::canonical(pci_netdev(sysfs, ifname) / "device", error);
    if (!error) names.push_back(device.filename().string());
    return names;
}

namespace {

struct CallFault {
    std::string_view call;             // empty: any
    std::array<int, 3> error_numbers;  // any of them; 0: none
    Fault fault;
};

constexpr Fault unresolved{"the peer's address does not resolve",
                           "check address, route and carrier: ip neigh; ip route get ADDRESS"};
constexpr Fault no_permission{"this user may not use /dev/infiniband/uverbs*",
                              "run as root, or as another user whom rdma-core's udev rules let in; "
                              "a container needs the device and its cgroup's permission"};
constexpr Fault no_device_file{"udev has not created /dev/infiniband/uverbs*",
                               "install rdma-core and reload the module: modprobe -r ib_uverbs; "
                               "modprobe ib_uverbs"};
constexpr Fault limits{
    "the limit of locked memory or of open files is too low",
    "raise LimitMEMLOCK= and LimitNOFILE= of the unit (ulimit -l -n shows them)"};
constexpr Fault gone{
    "the device failed or is gone",
    "check whether it is still listed, and why it failed: rdma link; dmesg | tail"};
constexpr Fault too_many_pairs{
    "the device has no room for more queue pairs or requests",
    "compare what is used with what it has: rdma resource show; ibv_devinfo -v | grep max_qp"};

constexpr Fault no_cm_device{
    "RDMA CM finds no device for the address: its GID is missing, or its node GUID is zero",
    "check both: ibv_devinfo -v | grep -E 'hca_id|node_guid|GID'"};

// The kernel's own "not supported" number, which has no name in user space.
constexpr int kernel_enotsupp = 524;

constexpr Fault no_dma_buf{
    "this kernel or this NIC's driver can't register a DMA-BUF: kernel 5.12 and mlx5, or newer, "
    "can",
    "use nvidia_peermem instead: modprobe nvidia_peermem; whether it can load: vf-guest peermem "
    "--explain"};

constexpr std::array<CallFault, 16> call_faults{{
    // The default limit is 8 MiB (vfmgr/kernel/KERNEL.md#privileges-and-limits).
    {"ibv_reg_mr",
     {ENOMEM},
     {"the limit of locked memory is too low",
      "set LimitMEMLOCK=infinity in the unit, or run as root"}},
    {"ibv_reg_mr",
     {EFAULT},
     {"the memory is not this machine's RAM; a GPU's memory without nvidia_peermem fails like this",
      "modprobe nvidia_peermem, or register it as a DMA-BUF"}},
    {"ibv_reg_mr",
     {EINVAL},
     {"the device refuses an MR of this length or access",
      "compare the length: ibv_devinfo -v | grep max_mr_size"}},
    {"ibv_reg_dmabuf_mr", {EOPNOTSUPP, EPROTONOSUPPORT}, no_dma_buf},
    {"ibv_reg_dmabuf_mr",
     {kernel_enotsupp},
     {"NVIDIA's driver does not let this NIC reach the GPU: on bare metal some chipsets need a "
      "common PCI switch",
      "compare: nvidia-smi topo -m; grep Grdma /proc/driver/nvidia/params"}},
    {"ibv_modify_qp", {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH}, unresolved},
    {"ibv_modify_qp",
     {EINVAL},
     {"the device refuses an attribute, most often a GID that is gone by now",
      "check its GIDs: ibv_devinfo -v"}},
    {"ibv_create_ah", {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH}, unresolved},
    {"ibv_create_qp", {ENOMEM, EINVAL}, too_many_pairs},
    {"ibv_open_device", {EACCES, EPERM}, no_permission},
    {"ibv_open_device", {ENOENT, ENXIO, ENODEV}, no_device_file},
    {"ibv_open_device", {ENOMEM}, limits},
    {"rdma_resolve_addr", {ENODEV, EADDRNOTAVAIL}, no_cm_device},
    {"rdma_resolve_addr", {EHOSTUNREACH, ENETUNREACH}, unresolved},
    {"", {EMFILE}, limits},
    {"", {EIO}, gone},
}};

// Numbered as in the kernel's enum ib_cm_rej_reason.
constexpr int rejected_stale = 10, rejected_service = 8, rejected_gid = 12,
              rejected_by_program = 28;

Fault rejection(int reason) {
    switch (reason) {
        case rejected_service:
            return {"nothing listens on that RDMA CM port any more",
                    "verify again; on the other end, list the listeners: rdma resource show cm_id"};
        case rejected_stale:
            return {"the other end still holds an earlier connection of this queue pair",
                    "verify again in a minute"};
        case rejected_gid:
            return {"the other end does not know the GID that RDMA CM chose for it",
                    "compare both ends: cma_roce_mode -d DEVICE -p 1"};
        case rejected_by_program:
            return {"the program at the other end refuses this address, or serves no more clients",
                    "check that the request left with the VF's address: ip route get ADDRESS"};
        default:
            return {"the other end's RDMA CM refuses the connection",
                    "check its kernel log: dmesg | tail"};
    }
}

struct LogFault {
    std::string_view words;
    std::string_view more;  // in the same line; empty: nothing
    Fault fault;
};

constexpr Fault iommu_fault{
    "the IOMMU blocked the device's access to memory",
    "find the address: dmesg | grep -E 'DMAR|AMD-Vi'; with a GPU, check ACS and iommu=pt"};

// Texts from the kernel's sources, 6.1 and 6.12.
constexpr std::array<LogFault, 9> log_faults{{
    {"Link is Down", "", {"the link went down", "check its other end: ethtool DEVICE; ip -s link"}},
    {"neighbor table overflow",
     "",
     {"the neighbour table is full, so addresses do not resolve",
      "sysctl -w net.ipv4.neigh.default.gc_thresh3=8192", true}},
    {"NETDEV WATCHDOG",
     "transmit queue",
     {"the NIC sent nothing for seconds and was reset",
      "check its driver, firmware and counters: ethtool -i DEVICE; ethtool -S DEVICE"}},
    {"DMAR:", "fault addr", iommu_fault},
    {"AMD-Vi:", "IO_PAGE_FAULT", iommu_fault},
    {"disagrees about version of symbol",
     "ib_register_peer_memory_client",
     {"nvidia_peermem was built for another RDMA stack than the running one",
      "rebuild it against this one (dkms autoinstall), or use DMA-BUF", true}},
    {"device's health compromised",
     "",
     {"the NIC's firmware has failed", "reset the NIC (devlink health show lists its state)"}},
    {"Out of memory: Killed process",
     "",
     {"the machine ran out of memory", "give the VM more (free -m shows what it has)", true}},
    {"PCIe Bus Error",
     "",
     {"the PCIe link has errors",
      "check the link and its errors: lspci -vv | grep -E 'LnkSta|CESta'"}},
}};

}  // namespace

std::string remedy_of(Fault const& fault) {
    return fmt::format("{}: {}", fault.cause, fault.command);
}

std::optional<Fault> errno_fault(std::string_view call, int error_number) {
    auto const found = std::ranges::find_if(call_faults, [&](CallFault const& each) {
        return error_number != 0 && std::ranges::count(each.error_numbers, error_number) > 0 &&
               (each.call.empty() || each.call == call);
    });
    return found == call_faults.end() ? std::nullopt : std::optional(found->fault);
}

Fault completion_fault(ibv_wc_status status, std::uint32_t vendor_err) {
    // A syndrome of mlx5, seen in VMs with GPUs (nccl#660, perftest#289).
    constexpr std::uint32_t mlx5_memory_not_reached = 0x51;
    if (status == IBV_WC_LOC_PROT_ERR && vendor_err == mlx5_memory_not_reached)
        return {"the NIC can't reach the memory: the IOMMU or ACS blocks it",
                "check the kernel log: dmesg | grep -E 'DMAR|AMD-Vi'"};
    switch (status) {
        case IBV_WC_RETRY_EXC_ERR:
            return {
                "the other end does not answer",
                "check carrier, VLAN and MTU on both sides, and that no firewall drops UDP port "
                "4791: nft list ruleset; on InfiniBand, that the subnet manager has set up both "
                "ports (ibv_devinfo -v) in one partition"};
        case IBV_WC_RNR_RETRY_EXC_ERR:
            return {"the other end has no receive posted: its session ended or it is overloaded",
                    "verify again, and check its load: uptime"};
        case IBV_WC_REM_ACCESS_ERR:
            return {"the other end's memory key is no longer valid", "verify again"};
        case IBV_WC_REM_INV_REQ_ERR:
            return {"the other end refuses the request's size or kind",
                    "use the same version on both ends"};
        case IBV_WC_REM_OP_ERR:
            return {"the other end failed", "check its kernel log: dmesg | tail"};
        case IBV_WC_WR_FLUSH_ERR:
            return {"an earlier request failed, or the other end closed the session",
                    "verify again; check the other end's log"};
        case IBV_WC_LOC_LEN_ERR:
            return {"a message is longer than its receive buffer",
                    "use the same version on both ends"};
        case IBV_WC_LOC_PROT_ERR:
            return {"the device has no access to the memory with that key",
                    "check the kernel log: dmesg | tail"};
        default:
            return {"the device gives no further reason",
                    "check the kernel logs of VM and host: dmesg | tail"};
    }
}

Fault cm_fault(rdma_cm_event_type event, int status) {
    switch (event) {
        case RDMA_CM_EVENT_ADDR_ERROR: {
            bool const far =
                status == -ETIMEDOUT || status == -EHOSTUNREACH || status == -ENETUNREACH;
            return far ? unresolved : no_cm_device;
        }
        case RDMA_CM_EVENT_ROUTE_ERROR:
            return {"the device's netdev is down, is gone or has too small an MTU",
                    "check them: rdma link; ip link show"};
        case RDMA_CM_EVENT_UNREACHABLE:
            return {
                "the other end's RDMA CM does not answer: UDP port 4791 is blocked, or one end "
                "speaks RoCE v1",
                "check both: nft list ruleset; cma_roce_mode -d DEVICE -p 1"};
        case RDMA_CM_EVENT_REJECTED:
            return rejection(status);
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            return gone;
        default:
            return {"RDMA CM gives no further reason",
                    "check the kernel logs of VM and host: dmesg | tail"};
    }
}

std::optional<Fault> log_fault(std::string_view line) {
    auto const has = [&](std::string_view words) { return line.find(words) != line.npos; };
    auto const found = std::ranges::find_if(
        log_faults, [&](LogFault const& each) { return has(each.words) && has(each.more); });
    return found == log_faults.end() ? std::nullopt : std::optional(found->fault);
}

Error verbs_error(ibv_context* context, std::string detail, char const* call, int error_number) {
    auto const fault = errno_fault(call, error_number);
    return {Problem::kernel_refused,
            fmt::format("{}: {}", context->device->name, detail),
            fault ? remedy_of(*fault) : "check the kernel log: dmesg | tail",
            {errno_cause(call, error_number)}};
}

Result<void> verbs_result(ibv_context* context, std::string_view detail, char const* call,
                          int error_number) {
    if (error_number == 0) return {};
    return fail(verbs_error(context, std::string(detail), call, error_number));
}

}  // namespace vfmgr::verify
