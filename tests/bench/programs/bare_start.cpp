// SPDX-License-Identifier: Apache-2.0
// The peer of the benchmark start-observe: the minimum that reads what vfmgrd must have read of the
// host before it is ready. It makes the same netlink dumps, reads the same sysfs files of each VF
// once, and the XML of all VMs over one libvirt connection. It parses none of it. In the emulated
// host:
//   bare_start
// Prints as JSON what it read and what each part took.
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libvirt/libvirt.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::array<char, 1 << 20> buffer;  // a page of a sysfs file, or a PF with 120 VFs

void give_up(char const* what) {
    std::perror(what);
    std::exit(1);
}

struct Nothing {};  // these messages have no header of their own

// Requests a dump, or one object, and reads all of the answer.
template <class Head>
void ask(mnl_socket* socket, int type, int flags, Head const& head, std::uint32_t extension = 0) {
    std::array<char, 256> memory{};
    auto* const message = mnl_nlmsg_put_header(memory.data());
    message->nlmsg_type = static_cast<std::uint16_t>(type);
    message->nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK);
    if constexpr (!std::is_empty_v<Head>)
        std::memcpy(mnl_nlmsg_put_extra_header(message, sizeof head), &head, sizeof head);
    if (extension != 0) mnl_attr_put_u32(message, IFLA_EXT_MASK, extension);
    if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0) give_up("bare_start: send");
    for (int more = 1; more > 0;) {
        auto const size = mnl_socket_recvfrom(socket, buffer.data(), buffer.size());
        if (size < 0) give_up("bare_start: receive");
        more = mnl_cb_run(buffer.data(), static_cast<std::size_t>(size), 0, 0, nullptr, nullptr);
        if (more < 0) give_up("bare_start: the kernel's answer");
    }
}

mnl_socket* open_socket(int protocol) {
    auto* const socket = mnl_socket_open(protocol);
    if (socket == nullptr || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
        give_up("bare_start: socket");
    return socket;
}

void read_network(std::vector<int> const& pf_netdevs) {
    auto* const route = open_socket(NETLINK_ROUTE);
    ask(route, RTM_GETLINK, NLM_F_DUMP, ifinfomsg{}, RTEXT_FILTER_SKIP_STATS);
    ask(route, RTM_GETADDR, NLM_F_DUMP, ifaddrmsg{});
    ask(route, RTM_GETROUTE, NLM_F_DUMP, rtmsg{});
    ask(route, RTM_GETNEIGH, NLM_F_DUMP, ndmsg{});
    for (int const ifindex : pf_netdevs) {
        ifinfomsg pf{};
        pf.ifi_index = ifindex;
        ask(route, RTM_GETLINK, 0, pf, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS);
    }
    mnl_socket_close(route);
    auto* const rdma = open_socket(NETLINK_RDMA);
    ask(rdma, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET), NLM_F_DUMP, Nothing{});
    mnl_socket_close(rdma);
    auto* const filter = open_socket(NETLINK_NETFILTER);
    for (int const type : {NFT_MSG_GETTABLE, NFT_MSG_GETSET, NFT_MSG_GETRULE})
        ask(filter, NFNL_SUBSYS_NFTABLES << 8 | type, NLM_F_DUMP, nfgenmsg{});
    mnl_socket_close(filter);
}

void read_file(fs::path const& file) {
    int const fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    static_cast<void>(::read(fd, buffer.data(), 4096));
    ::close(fd);
}

void read_link(fs::path const& link) {
    static_cast<void>(::readlink(link.c_str(), buffer.data(), buffer.size()));
}

void list(fs::path const& folder) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end;) it.increment(error);
}

struct Pass {
    int vfs = 0;
    std::vector<int> pf_netdevs;
};

void read_vf(fs::path const& vf) {
    read_link(vf);
    read_link(vf / "driver");
    read_link(vf / "iommu_group");
    read_file(vf / "config");
    read_file(vf / "reset_method");
    list(vf / "net");
    list(vf / "vfio-dev");
}

Pass read_sysfs() {
    Pass pass;
    for (auto const& device : fs::directory_iterator("/sys/bus/pci/devices")) {
        if (!fs::exists(device.path() / "sriov_totalvfs")) continue;
        for (auto const* const name : {"vendor", "device", "numa_node", "sriov_totalvfs",
                                       "sriov_drivers_autoprobe", "reset_method"})
            read_file(device.path() / name);
        read_link(device.path() / "driver");
        for (auto const& entry : fs::directory_iterator(device.path()))
            if (entry.path().filename().native().starts_with("virtfn")) {
                read_vf(entry.path());
                ++pass.vfs;
            }
        std::error_code none;
        for (auto const& netdev : fs::directory_iterator(device.path() / "net", none)) {
            read_file(netdev.path() / "ifindex");
            pass.pf_netdevs.push_back(std::atoi(buffer.data()));
        }
    }
    return pass;
}

int read_vms() {
    auto* const connection = virConnectOpen("qemu:///system");
    if (connection == nullptr) give_up("bare_start: libvirt");
    virDomainPtr* domains = nullptr;
    int const count = virConnectListAllDomains(connection, &domains, 0);
    for (int i = 0; i < count; ++i) {
        char* const xml = virDomainGetXMLDesc(domains[i], 0);
        if (xml == nullptr) give_up("bare_start: XML");
        std::free(xml);
        virDomainFree(domains[i]);
    }
    std::free(static_cast<void*>(domains));
    virConnectClose(connection);
    return count;
}

double seconds_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

int main() {
    auto const began = std::chrono::steady_clock::now();
    auto const pass = read_sysfs();
    auto const sysfs = seconds_since(began);
    read_network(pass.pf_netdevs);
    auto const network = seconds_since(began) - sysfs;
    int const vms = read_vms();
    std::printf(
        "{\"vfs\": %d, \"vms\": %d, \"sysfs\": %.3f, \"network\": %.3f, \"libvirt\": %.3f}\n",
        pass.vfs, vms, sysfs, network, seconds_since(began) - sysfs - network);
}
