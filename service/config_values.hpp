// SPDX-License-Identifier: Apache-2.0
// Values of the configuration files, each with what is wrong with it. Include in .cpp files only.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/rdma.hpp"
#include "vfmgr/plan/bounds.hpp"

namespace vfmgr {

// Takes a value or returns what is wrong with it: "must be a string". What it sets outlives it.
using Setter = std::function<std::string(toml::node const&)>;
// The keys that a table may hold.
using Keys = std::map<std::string, Setter, std::less<>>;

inline Setter text(std::string& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::string>();
        if (!value) return "must be a string";
        if (value->empty()) return "must not be empty";
        out = *value;
        return {};
    };
}

inline Setter absolute_path(std::string& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::string>();
        if (!value || !value->starts_with('/')) return "must be a path that begins with /";
        out = *value;
        return {};
    };
}

inline Setter ip_address(std::string& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::string>();
        if (!value || !IpAddress::parse(*value)) return "must be an IP address such as \"0.0.0.0\"";
        out = *value;
        return {};
    };
}

inline Setter boolean(bool& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<bool>();
        if (!value) return "must be true or false";
        out = *value;
        return {};
    };
}

struct WholeNumbers {
    std::int64_t low;
    std::int64_t high;
};

inline constexpr WholeNumbers some_seconds{1, 3600};

template <class T>
Setter integer(T& out, WholeNumbers range) {
    return [&out, range](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::int64_t>();
        if (!value || *value < range.low || *value > range.high)
            return fmt::format("must be a whole number from {} to {}", range.low, range.high);
        out = static_cast<T>(*value);
        return {};
    };
}
inline Setter number_of_vfs(std::uint16_t& out) {
    return integer(out, {0, UINT16_MAX});
}

// A list of strings that `read` understands. A later file's list replaces an earlier one's.
template <class T, class Read>
Setter list_of(std::vector<T>& out, Read read, std::string what) {
    return [&out, read, what = std::move(what)](toml::node const& node) -> std::string {
        auto const* const list = node.as_array();
        std::vector<T> all;
        for (std::size_t i = 0; list && i < list->size(); ++i) {
            auto const word = list->get(i)->value_exact<std::string>();
            auto one = word ? read(*word) : std::optional<T>();
            if (!one) break;
            all.push_back(std::move(*one));
        }
        if (!list || all.size() != list->size()) return "must be a list of " + what;
        out = std::move(all);
        return {};
    };
}
template <class T>
std::optional<T> parsed(std::string const& word) {
    auto value = T::parse(word);
    return value ? std::optional<T>(std::move(*value)) : std::nullopt;
}
inline Setter netdevs(std::vector<std::string>& out) {
    auto const read = [](std::string const& name) {
        return wrong_netdev_name(name) ? std::nullopt : std::optional(name);
    };
    return list_of(out, read, "netdevs such as [\"bond0\"]");
}
inline Setter prefixes(std::vector<IpPrefix>& out) {
    return list_of(out, parsed<IpPrefix>, "subnets such as [\"192.168.0.0/16\"]");
}
inline Setter uid_ranges(std::vector<UidRange>& out) {
    return list_of(out, parsed<UidRange>, "users such as [\"64055\", \"100000-165535\"]");
}

inline Setter vlan_ranges(std::vector<VlanRange>& out) {
    return list_of(out, parsed<VlanRange>, "VLANs such as [\"0\", \"100-199\"]; 0 is untagged");
}
inline Setter drivers(std::vector<std::string>& out) {
    auto const read = [](std::string const& name) {
        return name.empty() ? std::nullopt : std::optional(name);
    };
    return list_of(out, read, "drivers such as [\"vfio-pci\"]");
}

// A value that has no default.
template <class T>
Setter given(std::optional<T>& out, Setter (*setter)(T&)) {
    return [&out, setter](toml::node const& node) -> std::string {
        T value{};
        auto wrong = setter(value)(node);
        if (wrong.empty()) out = std::move(value);
        return wrong;
    };
}

}  // namespace vfmgr
