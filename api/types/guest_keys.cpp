// SPDX-License-Identifier: Apache-2.0
#include "api/types/guest_keys.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<GuestSecret> V>
void fields(F& f, V& secret) {
    f.value("sha256", secret.sha256);
    f.value("until", secret.until);
}

template <class F, Of<GuestKeys> V>
void fields(F& f, V& keys) {
    f.value("attachment", keys.attachment);
    f.maybe("token", keys.token);
    f.value("keys", keys.keys);
}

Result<GuestKeys> enrolled(GuestKeys keys, std::string const& shown_sha256, GuestSecret made,
                           Time now) {
    auto const is_shown = [&](GuestSecret const& secret) {
        return secret.sha256 == shown_sha256 && now < secret.until;
    };
    if (keys.token && is_shown(*keys.token)) {
        keys.token.reset();
        keys.keys = {std::move(made)};
        return keys;
    }
    auto const shown = std::ranges::find_if(keys.keys, is_shown);
    if (shown == keys.keys.end())
        return fail(Problem::unauthorized,
                    "this enrolment token was used, has expired or is another attachment's",
                    "make a new one on the host: vfctl attachment enrolment ATTACHMENT");
    // An answer may be lost: the guest goes on with the key that it has.
    keys.keys = {*shown, std::move(made)};
    return keys;
}

bool opens(std::vector<GuestSecret> const& keys, std::string const& shown_sha256, Time now) {
    return std::ranges::any_of(keys, [&](GuestSecret const& key) {
        return key.sha256 == shown_sha256 && now < key.until;
    });
}

template struct Json<GuestSecret>;
template struct Json<GuestKeys>;

}  // namespace vfmgr
