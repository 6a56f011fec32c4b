// SPDX-License-Identifier: Apache-2.0
#include "api/types/pf_identity.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

template <class T>
bool both(std::optional<T> const& a, std::optional<T> const& b) {
    return a && b;
}

template <class T>
bool differ(std::optional<T> const& a, std::optional<T> const& b) {
    return both(a, b) && *a != *b;
}

void add(std::string& text, char const* name, std::string const& value) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + value;
}

bool acceptable_serial(std::string_view serial) {
    constexpr std::size_t length_max = 255;  // the limit of VPD
    auto const printable = [](char c) { return c >= ' ' && c <= '~'; };
    return !serial.empty() && serial.size() <= length_max && std::ranges::all_of(serial, printable);
}

}  // namespace

template <class F, Of<PfIdentity> V>
void fields(F& f, V& identity) {
    f.nullable("mac", identity.mac);
    f.nullable("guid", identity.guid);
    f.nullable("serial", identity.serial);
}

bool empty(PfIdentity const& identity) {
    return !identity.mac && !identity.guid && !identity.serial;
}

std::string to_string(PfIdentity const& identity) {
    std::string text;
    if (identity.mac) add(text, "MAC", to_string(*identity.mac));
    if (identity.guid) add(text, "GUID", to_string(*identity.guid));
    if (identity.serial) add(text, "serial", *identity.serial);
    return text.empty() ? "an unknown identity" : text;
}

SamePf same_pf(PfIdentity const& known, PfIdentity const& observed) {
    if (differ(known.mac, observed.mac) || differ(known.guid, observed.guid) ||
        differ(known.serial, observed.serial))
        return SamePf::no;
    return both(known.mac, observed.mac) || both(known.guid, observed.guid) ? SamePf::yes
                                                                            : SamePf::unknown;
}

PfIdentity completed(PfIdentity known, PfIdentity const& observed) {
    auto const same = same_pf(known, observed);
    bool const is_first = empty(known);
    // The identity was read without a driver, so only the card's serial is known.
    bool const one_card = both(known.serial, observed.serial) && !known.mac && !known.guid;
    if (same == SamePf::no || !(same == SamePf::yes || is_first || one_card)) return known;
    if (!known.mac) known.mac = observed.mac;
    if (!known.guid) known.guid = observed.guid;
    if (!known.serial) known.serial = observed.serial;
    return known;
}

void check(JsonReader& reader, PfIdentity const& identity) {
    if (identity.serial && !acceptable_serial(*identity.serial))
        reader.complain("serial", "must be 1 to 255 printable characters");
}

template struct Json<PfIdentity>;

}  // namespace vfmgr
