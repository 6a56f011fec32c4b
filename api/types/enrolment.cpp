// SPDX-License-Identifier: Apache-2.0
#include "api/types/enrolment.hpp"

#include "api/types/json.hpp"
#include "api/types/text.hpp"
namespace vfmgr {
namespace {

constexpr std::size_t secret_characters_max = 128;

}  // namespace

template <class F, Of<Enrolment> V>
void fields(F& f, V& enrolment) {
    f.value("attachment", enrolment.attachment);
    f.value("port", enrolment.port);
    f.value("fingerprint", enrolment.fingerprint);
    f.value("token", enrolment.token);
    f.value("expires_at", enrolment.expires_at);
}

template <class F, Of<KeyRequest> V>
void fields(F& f, V& request) {
    f.value("secret", request.secret);
}

template <class F, Of<GuestKey> V>
void fields(F& f, V& key) {
    f.value("key", key.key);
    f.value("expires_at", key.expires_at);
}

void check(JsonReader& reader, KeyRequest const& request) {
    check_text(reader, "secret", request.secret, secret_characters_max);
}

void check(JsonReader& reader, Enrolment const& enrolment) {
    if (reader.clean("port") && enrolment.port == 0)
        reader.complain("port", "must be from 1 to 65535");
    if (reader.clean("fingerprint") && !is_hex(enrolment.fingerprint, 64))
        reader.complain("fingerprint", "must be 64 lower-case hexadecimal digits");
    check_text(reader, "token", enrolment.token, secret_characters_max);
    if (reader.clean() && !enrolment.attachment.mac)
        reader.complain("attachment", "must have a MAC");
}

template struct Json<Enrolment>;
template struct Json<KeyRequest>;
template struct Json<GuestKey>;

}  // namespace vfmgr
