// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/interface_filter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>
#include <sstream>

#include "api/os/descriptor.hpp"
#include "api/os/process.hpp"
#include "api/types/guest.hpp"
#include "api/types/rdma.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr unsigned roce_v2_port = 4791;  // assigned by IANA; the same for rxe and hardware

// Linux answers for all of its addresses on every interface, so an interface of our own drops
// packets for any other address. libvirt's NAT networks make the host a router, so nothing is
// forwarded through it either. A PF's own netdev and foreign VLAN devices belong to the host. There
// our address is closed to all, and everything is closed to the VMs with an attachment, by MAC.
// Neighbour solicitations are IPv6's ARP; the inet family does not handle ARP itself. A new
// connection of an interop client passes only to a socket bound to exactly that address: the
// responder's, while it is open for such a client. Packets that begin no connection pass: at the
// end of a handshake nftables finds no full socket yet (nft_socket.c). The guest plane's TCP port
// is open to the VMs that have no vsock device for it, each by its MAC and both addresses.
//
// The netdev table filters what a VM sends before the host's network stack reads it. It accepts
// traffic from the VM's address to the responder's, requests for the responder's MAC, and ARP
// probes (RFC 5227) for the VM's own address, by which vf-guest detects that the host has it, too.
// So a VM can't claim a foreign address by ARP, route for another host, or reach a VLAN with a tag
// of its own. A neighbour advertisement may name any address, whatever its sender; the host
// solicits no VM (host_interface.cpp sets their MACs).
constexpr auto rules = R"(
add table inet {table}
add set inet {table} {interfaces} {{ type ifname; }}
add set inet {table} {v4} {{ type ifname . ipv4_addr; }}
add set inet {table} {v6} {{ type ifname . ipv6_addr; }}
add set inet {table} {vms} {{ type ifname . ether_addr; }}
add set inet {table} {peers4} {{ type ifname . ipv4_addr; }}
add set inet {table} {peers6} {{ type ifname . ipv6_addr; }}
add set inet {table} {guests4} {{ type ifname . ether_addr . ipv4_addr . ipv4_addr; }}
add set inet {table} {guests6} {{ type ifname . ether_addr . ipv6_addr . ipv6_addr; }}
add chain inet {table} responder
flush chain inet {table} responder
add rule inet {table} responder udp dport {{ {roce}, {echo} }} accept
add rule inet {table} responder tcp dport {interop} {begins} accept
add rule inet {table} responder tcp dport {interop} {goes_on} accept
add rule inet {table} responder tcp dport {guests} {from4} @{guests4} accept
add rule inet {table} responder tcp dport {guests} {from6} @{guests6} accept
add rule inet {table} responder icmp type destination-unreachable accept
add rule inet {table} responder icmpv6 type {errors} accept
add rule inet {table} responder icmpv6 type {neighbours} accept
add rule inet {table} responder drop
add chain inet {table} input {{ type filter hook input priority filter - 1; policy accept; }}
flush chain inet {table} input
add rule inet {table} input iifname . ip daddr @{v4} goto responder
add rule inet {table} input iifname . ip6 daddr @{v6} goto responder
add rule inet {table} input iifname . ether saddr @{vms} goto responder
add rule inet {table} input iifname @{interfaces} icmpv6 type {neighbours} accept
add rule inet {table} input iifname @{interfaces} drop
add chain inet {table} forward {{ type filter hook forward priority filter - 1; policy accept; }}
flush chain inet {table} forward
add rule inet {table} forward iifname . ether saddr @{vms} drop
add rule inet {table} forward oifname . ip daddr @{peers4} drop
add rule inet {table} forward oifname . ip6 daddr @{peers6} drop
add rule inet {table} forward iifname @{interfaces} drop
add rule inet {table} forward oifname @{interfaces} drop
add table netdev {table}
add set netdev {table} {vms} {{ type ifname . ether_addr; }}
add set netdev {table} {talks4} {{ type ifname . ether_addr . ipv4_addr . ipv4_addr; }}
add set netdev {table} {talks6} {{ type ifname . ether_addr . ipv6_addr . ipv6_addr; }}
add set netdev {table} {probes4} {{ type ifname . ether_addr . ipv4_addr; }}
add set netdev {table} {asks6} {{ type ifname . ether_addr . ipv6_addr . ipv6_addr; }}
add chain netdev {table} vm
flush chain netdev {table} vm
add rule netdev {table} vm ether type {{ 8021q, 8021ad }} drop
add rule netdev {table} vm iifname . ether saddr . arp saddr ip . arp daddr ip @{talks4} accept
add rule netdev {table} vm {probe} iifname . ether saddr . arp daddr ip @{probes4} accept
add rule netdev {table} vm iifname . ether saddr . ip saddr . ip daddr @{talks4} accept
add rule netdev {table} vm icmpv6 type nd-neighbor-advert drop
add rule netdev {table} vm iifname . ether saddr . ip6 saddr . ip6 daddr @{talks6} accept
add rule netdev {table} vm icmpv6 type nd-neighbor-solicit {asks} accept
add rule netdev {table} vm drop
)";

// Lives as long as the interface. Named by ifindex: nft rejects some names that the kernel accepts.
constexpr auto interface_rules = R"(
add chain netdev {table} {chain} {{ type filter hook ingress device "{interface}" priority -200; }}
flush chain netdev {table} {chain}
add rule netdev {table} {chain} iifname . ether saddr @{vms} goto vm
)";

constexpr auto peers4 = "peers4";
constexpr auto peers6 = "peers6";
constexpr auto probes4 = "probes4";
// Destinations and sources of a VM's requests for the responder's MAC. Linux first asks from the
// address it will send from, so a VM with a link-local address not made from its MAC (RFC 7217)
// works too: later requests from there are dropped, and the VM starts over from its own address.
constexpr auto asks6 = "asks6";

std::string table_text() {
    using fmt::arg;
    return fmt::format(
        rules, arg("table", nft::table), arg("interfaces", nft::interfaces),
        arg("v4", nft::addresses4), arg("v6", nft::addresses6), arg("vms", nft::vms),
        arg("peers4", peers4), arg("peers6", peers6), arg("talks4", nft::talks4),
        arg("talks6", nft::talks6), arg("probes4", probes4), arg("asks6", asks6),
        arg("guests4", nft::guests4), arg("guests6", nft::guests6), arg("guests", guest_plane_port),
        arg("from4", "iifname . ether saddr . ip saddr . ip daddr"),
        arg("from6", "iifname . ether saddr . ip6 saddr . ip6 daddr"), arg("roce", roce_v2_port),
        arg("echo", responder_echo_port), arg("interop", perftest_port),
        arg("begins", "tcp flags & (syn | ack) == syn socket wildcard 0"),
        arg("goes_on", "tcp flags & syn != syn"),
        arg("probe", "arp operation request arp saddr ip 0.0.0.0"),
        arg("errors", "{ destination-unreachable, packet-too-big }"),
        arg("neighbours", "{ nd-neighbor-solicit, nd-neighbor-advert }"),
        arg("asks", fmt::format("iifname . ether saddr . ip6 saddr . ip6 daddr @{}", asks6)));
}

std::string chain_of(Netdev const& interface) {
    return fmt::format("interface{}", interface.ifindex);
}

std::string interface_chain_text(Netdev const& interface) {
    using fmt::arg;
    return fmt::format(interface_rules, arg("table", nft::table), arg("chain", chain_of(interface)),
                       arg("interface", interface.name), arg("vms", nft::vms));
}

// Returns the number of rules in each chain of an unmodified filter.
std::map<std::string, std::size_t> const& whole_rules() {
    static auto const counted = [] {
        std::map<std::string, std::size_t> by_chain;
        std::istringstream text(table_text());
        for (std::string line; std::getline(text, line);) {
            std::istringstream words(line);
            std::string add, rule, family, table, chain;
            words >> add >> rule >> family >> table >> chain;
            if (rule == "rule") ++by_chain[fmt::format("{} {}", family, chain)];
        }
        return by_chain;
    }();
    return counted;
}

bool has_rules(PacketFilter const& filter, std::string_view family) {
    return std::ranges::all_of(whole_rules(), [&](auto const& each) {
        auto const& [chain, count] = each;
        auto const found = filter.rules.find(chain);
        return !chain.starts_with(family) ||
               (found != filter.rules.end() && found->second == count);
    });
}

// A set element: of "inet vfmgr hosts4", one is `"enp1s0.100" . 192.168.100.3`.
struct Element {
    std::string set;
    std::string key;
    bool operator==(Element const&) const = default;
};
using Elements = std::vector<Element>;

template <class... Part>
Element element(char const* family, char const* set, std::string const& interface,
                Part const&... part) {
    auto key = fmt::format("\"{}\"", interface);
    ((key += " . " + to_string(part)), ...);
    return {fmt::format("{} {} {}", family, nft::table, set), std::move(key)};
}

Element address_element(std::string const& interface, IpAddress const& address) {
    bool const v4 = address.family == IpAddress::Family::v4;
    return element("inet", v4 ? nft::addresses4 : nft::addresses6, interface, address);
}

// Returns fe80:: plus the MAC, as Linux normally builds it (RFC 4291, appendix A).
IpAddress link_local(MacAddress const& mac) {
    auto const& o = mac.octets;
    return {IpAddress::Family::v6,
            {0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(o[0] ^ 2U), o[1], o[2], 0xff,
             0xfe, o[3], o[4], o[5]}};
}

// Returns the destination of a neighbour solicitation for `address` (RFC 4291, 2.7.1).
IpAddress solicited_node(IpAddress const& address) {
    auto const& o = address.octets;
    return {IpAddress::Family::v6,
            {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, o[13], o[14], o[15]}};
}

Elements elements_of(FilteredVm const& vm) {
    auto const& [interface, mac, address, responder, guest_plane] = vm;
    bool const v4 = address.family == IpAddress::Family::v4;
    Elements all{
        element("inet", nft::vms, interface, mac), element("netdev", nft::vms, interface, mac),
        element("inet", v4 ? peers4 : peers6, interface, address),
        element("netdev", v4 ? nft::talks4 : nft::talks6, interface, mac, address, responder)};
    if (guest_plane)
        all.push_back(
            element("inet", v4 ? nft::guests4 : nft::guests6, interface, mac, address, responder));
    if (v4) {
        all.push_back(element("netdev", probes4, interface, mac, address));
        return all;
    }
    for (auto const& from : {address, link_local(mac)})
        for (auto const& to : {responder, solicited_node(responder)})
            all.push_back(element("netdev", asks6, interface, mac, from, to));
    return all;
}

std::string added(Element const& each) {
    return fmt::format("add element {} {{ {} }}\n", each.set, each.key);
}
// Adds the element first, so that deleting a missing one is no error.
std::string deleted(Element const& each) {
    return added(each) + fmt::format("delete element {} {{ {} }}\n", each.set, each.key);
}

// Removes the VMs of `out`, except elements (a MAC, for example) shared with VMs that `stay`.
std::string vms_out(std::vector<FilteredVm> const& out, std::vector<FilteredVm> const& stay) {
    Elements kept;
    for (auto const& vm : stay) std::ranges::move(elements_of(vm), std::back_inserter(kept));
    std::string script;
    for (auto const& vm : out)
        for (auto const& each : elements_of(vm))
            if (std::ranges::find(kept, each) == kept.end()) script += deleted(each);
    return script;
}

Result<FileDescriptor> memory_file(std::string const& name) {
    FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
    if (file) return file;
    return fail({Problem::unavailable,
                 "nft could not be started",
                 "check that the host has free memory and file descriptors",
                 {errno_cause("memfd_create", errno)}});
}

std::string first_line_of(FileDescriptor const& file) {
    std::array<char, 256> text{};
    auto const got = ::pread(file.get(), text.data(), text.size(), 0);
    std::string_view const all(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    return std::string(all.substr(0, all.find('\n')));
}

Result<pid_t> spawn_nft(FileDescriptor const& input, FileDescriptor const& output) {
    auto const started = spawn({.arguments = {"nft", "-f", "-"},
                                .descriptors = {{input.get(), STDIN_FILENO},
                                                {output.get(), STDOUT_FILENO},
                                                {output.get(), STDERR_FILENO}},
                                .close_from = STDERR_FILENO + 1});
    if (started) return *started;
    return fail({Problem::unsupported,
                 "the host's interfaces can't be closed to tenants: nft can't be run",
                 "install it: apt-get install nftables",
                 {errno_cause("posix_spawnp nft", started.error())}});
}

// Applies the whole script or nothing: nft runs a file as one transaction.
Result<void> run_nft(std::string const& script, std::string const& detail, Deadline deadline) {
    VFMGR_TRY(auto const input, memory_file("nft-script"));
    VFMGR_TRY(auto const output, memory_file("nft-output"));
    if (::pwrite(input.get(), script.data(), script.size(), 0) != std::ssize(script))
        return fail({Problem::unavailable,
                     detail,
                     "check that the host has free memory",
                     {errno_cause("pwrite", errno)}});
    VFMGR_TRY(auto const pid, spawn_nft(input, output));
    auto const end = end_by(pid, deadline);
    if (!end)
        return fail(Problem::timed_out, fmt::format("{}: nft did not finish in time", detail),
                    "search the kernel's log for hung tasks: journalctl -k");
    if (end->well()) return {};
    auto const first_line = first_line_of(output);
    return fail({Problem::kernel_refused,
                 fmt::format("{}: {}", detail, first_line),
                 "check that the kernel has nftables: nft list tables",
                 {{"nft -f -", end->how, first_line}}});
}

// The kernel allows these characters in a name; nft would interpret them.
Result<void> require_nft_name(std::string const& ifname) {
    if (ifname.find_first_of("\"\\*$") == std::string::npos) return {};
    return fail(Problem::unsupported,
                fmt::format("nft does not accept the interface name {}, so the interface can't be "
                            "closed to tenants",
                            quoted(ifname)),
                "rename the interface: ip link set OLD name NEW");
}

}  // namespace

Result<void> filter_address(Netdev const& interface, IpAddress const& address, Deadline deadline) {
    VFMGR_CHECK(require_nft_name(interface.name));
    auto script = table_text() + added(address_element(interface.name, address));
    if (ours(interface)) script += added(element("inet", nft::interfaces, interface.name));
    return run_nft(
        script,
        fmt::format("{} at {} could not be closed to tenants", interface.name, to_string(address)),
        deadline);
}

Result<void> filter_vm(Netdev const& interface, FilteredVm const& vm, Deadline deadline) {
    VFMGR_CHECK(require_nft_name(interface.name));
    VFMGR_TRY(auto const filter, read_packet_filter(deadline));
    std::vector<FilteredVm> before, stay{vm};
    for (auto const& each : filter.vms) {
        bool const replaced = each.ifname == vm.ifname && each.address == vm.address;
        (replaced ? before : stay).push_back(each);
    }
    auto script = table_text() + interface_chain_text(interface) + vms_out(before, stay);
    for (auto const& each : elements_of(vm)) script += added(each);
    return run_nft(script,
                   fmt::format("{} could not be closed to {}", interface.name, to_string(vm.mac)),
                   deadline);
}

Result<void> unfilter_address(std::string const& interface, IpAddress const& address,
                              Deadline deadline) {
    VFMGR_TRY(auto const filter, read_packet_filter(deadline));
    if (std::ranges::find(filter.addresses, FilteredAddress{interface, address}) ==
        filter.addresses.end())
        return {};
    return run_nft(
        deleted(address_element(interface, address)),
        fmt::format("the filter of {} at {} could not be removed", interface, to_string(address)),
        deadline);
}

Result<void> unfilter_vm(Netdev const& interface, IpAddress const& address, Deadline deadline) {
    VFMGR_TRY(auto const filter, read_packet_filter(deadline));
    std::vector<FilteredVm> out, stay;
    for (auto const& each : filter.vms) {
        if (each.ifname != interface.name) continue;
        (each.address == address ? out : stay).push_back(each);
    }
    if (out.empty()) return {};
    auto script = table_text() + vms_out(out, stay);
    auto const chain = chain_of(interface);
    if (stay.empty() && filter.rules.contains("netdev " + chain))
        script += fmt::format("flush chain netdev {0} {1}\ndelete chain netdev {0} {1}\n",
                              nft::table, chain);
    return run_nft(script,
                   fmt::format("the filter of {} for {} could not be removed", interface.name,
                               to_string(address)),
                   deadline);
}

Result<void> unfilter_interface(std::string const& interface, Deadline deadline) {
    VFMGR_TRY(auto const filter, read_packet_filter(deadline));
    std::string script;
    std::vector<FilteredVm> vms;
    std::ranges::copy_if(filter.vms, std::back_inserter(vms),
                         [&](FilteredVm const& vm) { return vm.ifname == interface; });
    for (auto const& each : filter.addresses)
        if (each.ifname == interface) script += deleted(address_element(interface, each.address));
    if (std::ranges::find(filter.interfaces, interface) != filter.interfaces.end())
        script += deleted(element("inet", nft::interfaces, interface));
    script += vms_out(vms, {});
    if (script.empty()) return {};
    return run_nft(table_text() + script,
                   fmt::format("the filter of {} could not be removed", interface), deadline);
}

InterfaceFilter filter_at(PacketFilter const& filter, Netdev const& interface) {
    InterfaceFilter found;
    bool const closed = !ours(interface) || std::ranges::find(filter.interfaces, interface.name) !=
                                                filter.interfaces.end();
    if (!closed || !has_rules(filter, "inet")) return found;
    for (auto const& each : filter.addresses)
        if (each.ifname == interface.name) found.addresses.push_back(each.address);
    auto const chain = filter.rules.find("netdev " + chain_of(interface));
    if (chain == filter.rules.end() || chain->second != 1 || !has_rules(filter, "netdev"))
        return found;
    std::ranges::copy_if(filter.vms, std::back_inserter(found.vms),
                         [&](FilteredVm const& vm) { return vm.ifname == interface.name; });
    return found;
}

}  // namespace vfmgr
