// SPDX-License-Identifier: Apache-2.0
// How a guest that reaches the host by TCP gets its key. Values.
#pragma once

#include <string>

#include "api/types/guest.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// What a guest needs to reach the host by TCP over the VF itself, before it can ask the host for
// anything: a file of the VM. Only the answer that makes it contains the token.
struct Enrolment {
    GuestAttachment attachment;  // to set up the VF by; the host is at its `responder`
    std::uint16_t port = guest_plane_port;
    std::string fingerprint;  // SHA-256 of the host's certificate, hex
    std::string token;        // good once
    Time expires_at{};        // of the token
    bool operator==(Enrolment const&) const = default;
};
// From the guest: the enrolment's token, or the key that it has.
struct KeyRequest {
    std::string secret;
    bool operator==(KeyRequest const&) const = default;
};
// The guest's from now on, as a bearer token.
struct GuestKey {
    std::string key;
    Time expires_at{};
    bool operator==(GuestKey const&) const = default;
};

extern template struct Json<Enrolment>;
extern template struct Json<KeyRequest>;
extern template struct Json<GuestKey>;

}  // namespace vfmgr
