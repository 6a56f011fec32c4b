// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/leg_filter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "api/types/child_process.hpp"
#include "api/types/file_descriptor.hpp"
#include "api/types/guest.hpp"
#include "api/types/stock.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr unsigned roce_v2_port = 4791;  // IANA's; rxe and hardware alike

// Linux answers for all of its addresses on every interface, so a leg of our own lets nothing else
// in; and libvirt's NAT networks make the host a router, so nothing goes through it either. A PF's
// own netdev is the host's: there only our address is closed. Neighbour solicitations are IPv6's
// ARP; ARP itself is no matter of the family inet. A connection of stock clients begins only at a
// socket that is bound to that very address: the responder's, while it is open for one of them.
// What begins none goes on: the end of a handshake meets no whole socket yet (nft_socket.c).
constexpr auto rules = R"(
add table inet {table}
add set inet {table} {legs} {{ type ifname; }}
add set inet {table} {v4} {{ type ifname . ipv4_addr; }}
add set inet {table} {v6} {{ type ifname . ipv6_addr; }}
add chain inet {table} input {{ type filter hook input priority filter - 1; policy accept; }}
flush chain inet {table} input
add rule inet {table} input iifname . ip daddr @{v4} udp dport {{ {roce}, {echo} }} accept
add rule inet {table} input iifname . ip daddr @{v4} tcp dport {stock} {begins} accept
add rule inet {table} input iifname . ip daddr @{v4} tcp dport {stock} {goes_on} accept
add rule inet {table} input iifname . ip daddr @{v4} icmp type destination-unreachable accept
add rule inet {table} input iifname . ip daddr @{v4} drop
add rule inet {table} input iifname . ip6 daddr @{v6} udp dport {{ {roce}, {echo} }} accept
add rule inet {table} input iifname . ip6 daddr @{v6} tcp dport {stock} {begins} accept
add rule inet {table} input iifname . ip6 daddr @{v6} tcp dport {stock} {goes_on} accept
add rule inet {table} input iifname . ip6 daddr @{v6} icmpv6 type {errors} accept
add rule inet {table} input iifname . ip6 daddr @{v6} icmpv6 type {neighbours} accept
add rule inet {table} input iifname . ip6 daddr @{v6} drop
add rule inet {table} input iifname @{legs} icmpv6 type {neighbours} accept
add rule inet {table} input iifname @{legs} drop
add chain inet {table} forward {{ type filter hook forward priority filter - 1; policy accept; }}
flush chain inet {table} forward
add rule inet {table} forward iifname @{legs} drop
add rule inet {table} forward oifname @{legs} drop
)";

std::string table_text() {
    using fmt::arg;
    return fmt::format(rules, arg("table", nft::table), arg("legs", nft::legs),
                       arg("v4", nft::addresses4), arg("v6", nft::addresses6),
                       arg("roce", roce_v2_port), arg("echo", responder_echo_port),
                       arg("stock", perftest_port),
                       arg("begins", "tcp flags & (syn | ack) == syn socket wildcard 0"),
                       arg("goes_on", "tcp flags & syn != syn"),
                       arg("errors", "{ destination-unreachable, packet-too-big }"),
                       arg("neighbours", "{ nd-neighbor-solicit, nd-neighbor-advert }"));
}

// "add element inet vfmgr hosts4 { "enp1s0.100" . 192.168.100.3 }"
std::string address_text(std::string_view verb, std::string const& leg, IpAddress const& address) {
    auto const* const set =
        address.family == IpAddress::Family::v4 ? nft::addresses4 : nft::addresses6;
    return fmt::format("{} element inet {} {} {{ \"{}\" . {} }}\n", verb, nft::table, set, leg,
                       to_string(address));
}

std::string leg_text(std::string_view verb, std::string const& leg) {
    return fmt::format("{} element inet {} {} {{ \"{}\" }}\n", verb, nft::table, nft::legs, leg);
}

Result<FileDescriptor> memory_file(std::string const& name) {
    FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
    if (file) return file;
    return fail({Problem::unavailable,
                 "nft could not be started",
                 "look whether the host has memory and descriptors left",
                 {errno_cause("memfd_create", errno)}});
}

std::string first_line_of(FileDescriptor const& file) {
    std::array<char, 256> text{};
    auto const got = ::pread(file.get(), text.data(), text.size(), 0);
    std::string_view const all(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    return std::string(all.substr(0, all.find('\n')));
}

Result<pid_t> spawn_nft(FileDescriptor const& input, FileDescriptor const& output) {
    std::string name = "nft", option = "-f", file = "-";
    std::array<char*, 4> argv{name.data(), option.data(), file.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, output.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, output.get(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    pid_t pid = 0;
    int const error = ::posix_spawnp(&pid, "nft", &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error == 0) return pid;
    return fail({Problem::unsupported,
                 "the host's legs can't be closed to tenants: nft does not run",
                 "install it: apt-get install nftables",
                 {errno_cause("posix_spawnp nft", error)}});
}

// All of it or nothing: nft makes one transaction of a file.
Result<void> run_nft(std::string const& script, std::string const& detail, Deadline deadline) {
    VFMGR_TRY(auto const input, memory_file("nft-script"));
    VFMGR_TRY(auto const output, memory_file("nft-output"));
    if (::pwrite(input.get(), script.data(), script.size(), 0) != std::ssize(script))
        return fail({Problem::unavailable,
                     detail,
                     "look whether the host has memory left",
                     {errno_cause("pwrite", errno)}});
    VFMGR_TRY(auto const pid, spawn_nft(input, output));
    bool const late = !await_end_of(pid, deadline);
    if (late) ::kill(pid, SIGKILL);
    auto const end = bury(pid);
    if (late)
        return fail(Problem::timed_out, fmt::format("{}: nft did not end in time", detail),
                    "look for hung tasks in the kernel's log");
    if (end.well) return {};
    auto const said = first_line_of(output);
    return fail({Problem::kernel_refused,
                 fmt::format("{}: {}", detail, said),
                 "look whether the kernel has nftables: nft list tables",
                 {{"nft -f -", end.how, said}}});
}

}  // namespace

Result<void> filter_address(Netdev const& leg, IpAddress const& address, Deadline deadline) {
    // The kernel takes these in a name; nft would take them for its own.
    if (leg.name.find_first_of("\"\\*$") != std::string::npos)
        return fail(Problem::unsupported,
                    fmt::format("{} has no name that nft understands, so it can't be closed to "
                                "tenants",
                                vfmgr::quoted(leg.name)),
                    "give the interface another name: ip link set … name …");
    auto script = table_text() + address_text("add", leg.name, address);
    if (ours(leg)) script += leg_text("add", leg.name);
    return run_nft(
        script,
        fmt::format("{} at {} could not be closed to tenants", leg.name, to_string(address)),
        deadline);
}

Result<void> unfilter_address(std::string const& leg, IpAddress const& address, Deadline deadline) {
    VFMGR_TRY(auto const filter, read_packet_filter(deadline));
    if (std::ranges::find(filter.addresses, FilteredAddress{leg, address}) ==
        filter.addresses.end())
        return {};
    return run_nft(
        address_text("delete", leg, address),
        fmt::format("the filter of {} at {} could not be removed", leg, to_string(address)),
        deadline);
}

Result<void> unfilter_leg(std::string const& leg, Deadline deadline) {
    VFMGR_TRY(auto const filter, read_packet_filter(deadline));
    std::string script;
    for (auto const& each : filter.addresses)
        if (each.ifname == leg) script += address_text("delete", leg, each.address);
    if (std::ranges::find(filter.legs, leg) != filter.legs.end()) script += leg_text("delete", leg);
    if (script.empty()) return {};
    return run_nft(script, fmt::format("the filter of {} could not be removed", leg), deadline);
}

}  // namespace vfmgr
