// SPDX-License-Identifier: Apache-2.0
#include "api/types/rdma_link.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

// IB_DEVICE_NAME_MAX and IFNAMSIZ are 64 and 16, including the NUL.
constexpr std::size_t rdma_name_max = 63;
constexpr std::size_t netdev_name_max = 15;

bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::optional<std::string> wrong_name(std::string_view name, std::size_t characters_max) {
    auto const allowed = [](char c) {
        return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
    };
    if (!name.empty() && name.size() <= characters_max && is_letter_or_digit(name.front()) &&
        std::ranges::all_of(name, allowed))
        return std::nullopt;
    return fmt::format(
        "must be 1 to {} letters, digits, '_', '-' and '.', the first a letter or digit",
        characters_max);
}

}  // namespace

template <class F, Of<RdmaLinkSpec> V>
void fields(F& f, V& spec) {
    f.value("type", spec.type);
    f.value("ifname", spec.ifname);
}

template <class F, Of<SoftRdmaLink> V>
void fields(F& f, V& link) {
    f.value("name", link.name);
    f.value("type", link.type);
    f.value("ifname", link.ifname);
}

template <class F, Of<RdmaUser> V>
void fields(F& f, V& user) {
    f.nullable("pid", user.pid);
    f.value("comm", user.comm);
    f.value("holds", user.holds);
}

template <class F, Of<ObservedRdmaLink> V>
void fields(F& f, V& observed) {
    f.nullable("type", observed.type);
    f.nullable("ifname", observed.ifname);
    f.value("active", observed.active);
    f.value("users", observed.users);
    f.nullable("users_unknown", observed.users_unknown);
}

template <class F, Of<RdmaLink> V>
void fields(F& f, V& link) {
    f.value("name", link.name);
    f.value("owner", link.owner);
    f.value("state", link.state);
    f.value("detail", link.detail);
    f.value("revision", link.revision);
    f.nullable("desired", link.desired);
    f.nullable("observed", link.observed);
}

std::optional<std::string> wrong_rdma_name(std::string_view name) {
    return wrong_name(name, rdma_name_max);
}
std::optional<std::string> wrong_netdev_name(std::string_view name) {
    return wrong_name(name, netdev_name_max);
}

void check(JsonReader& reader, RdmaLinkSpec const& spec) {
    if (!reader.clean()) return;
    if (auto wrong = wrong_netdev_name(spec.ifname)) reader.complain("ifname", std::move(*wrong));
}

template struct Json<RdmaLinkSpec>;
template struct Json<SoftRdmaLink>;
template struct Json<RdmaUser>;
template struct Json<ObservedRdmaLink>;
template struct Json<RdmaLink>;

}  // namespace vfmgr
