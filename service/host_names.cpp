// SPDX-License-Identifier: Apache-2.0
#include "service/host_names.hpp"

#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>

#include "api/os/file.hpp"
#include "api/os/handle.hpp"
#include "api/os/socket_address.hpp"

namespace vfmgr {
namespace {

std::string own_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return {};
    return name.data();
}

// A kernel that was given no name says "(none)".
bool fits_certificate(std::string const& name) {
    constexpr std::size_t characters_max = 253;
    constexpr auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    return !name.empty() && name.size() <= characters_max &&
           name.find_first_not_of(allowed) == std::string::npos;
}

std::vector<std::string> words_of(std::string_view line) {
    std::istringstream in{std::string(line.substr(0, line.find('#')))};
    return {std::istream_iterator<std::string>(in), {}};
}

std::optional<IpAddress> address_of(sockaddr const* given) {
    if (!given || (given->sa_family != AF_INET && given->sa_family != AF_INET6))
        return std::nullopt;
    SocketAddress address;
    address.length = given->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, given, address.length);
    return address.address();
}

bool of_one_link(IpAddress const& address) {
    auto const v4 = IpPrefix::parse("169.254.0.0/16").value();
    auto const v6 = IpPrefix::parse("fe80::/10").value();
    return v4.contains(address) || v6.contains(address);
}

std::set<IpAddress> addresses_of_interfaces() {
    ifaddrs* found = nullptr;
    if (::getifaddrs(&found) != 0) return {};
    Handle<ifaddrs, ::freeifaddrs> const all(found);
    auto const temporary =
        temporary_addresses(read_file("/proc/net/if_inet6").value_or(std::string()));
    std::set<IpAddress> addresses;
    for (auto const* one = all.get(); one; one = one->ifa_next) {
        bool const counts = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
        auto const address = counts ? address_of(one->ifa_addr) : std::nullopt;
        if (address && !of_one_link(*address) && !temporary.contains(*address))
            addresses.insert(*address);
    }
    return addresses;
}

}  // namespace

std::vector<std::string> host_names(std::set<IpAddress> const& besides) {
    auto const own = fits_certificate(own_name()) ? own_name() : "localhost";
    auto const host = own.substr(0, own.find('.'));
    auto names = full_names(read_file("/etc/hosts").value_or(std::string()), host);
    names.insert({"localhost", "127.0.0.1", "::1", host});
    for (auto const& address : addresses_of_interfaces())
        if (!besides.contains(address)) names.insert(to_string(address));
    names.erase("");
    names.erase(own);
    std::vector<std::string> all{own};
    all.insert(all.end(), names.begin(), names.end());
    return all;
}

std::set<std::string> full_names(std::string_view hosts, std::string const& host) {
    std::set<std::string> names;
    while (!hosts.empty()) {
        auto const end = std::min(hosts.find('\n'), hosts.size());
        auto const words = words_of(hosts.substr(0, end));
        hosts.remove_prefix(std::min(end + 1, hosts.size()));
        if (std::ranges::find(words, host) == words.end()) continue;
        for (auto const& word : words)
            if (word.starts_with(host + ".") && fits_certificate(word)) names.insert(word);
    }
    return names;
}

// A line: address, index, prefix length, scope and flags in hex, and the interface.
std::set<IpAddress> temporary_addresses(std::string_view if_inet6) {
    std::set<IpAddress> addresses;
    std::istringstream lines{std::string(if_inet6)};
    for (std::string line; std::getline(lines, line);) {
        auto const words = words_of(line);
        if (words.size() != 6 || words[0].size() != 32) continue;
        unsigned flags = 0;
        std::from_chars(words[4].data(), words[4].data() + words[4].size(), flags, 16);
        if ((flags & (IFA_F_TEMPORARY | IFA_F_DEPRECATED)) == 0) continue;
        std::string text;
        for (std::size_t i = 0; i < 32; i += 4) text += (i > 0 ? ":" : "") + words[0].substr(i, 4);
        if (auto const address = IpAddress::parse(text)) addresses.insert(*address);
    }
    return addresses;
}

}  // namespace vfmgr
