// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <string_view>

#include "api/http/http.hpp"
#include "api/http/issuing.hpp"
#include "api/http/tls.hpp"
#include "api/types/addresses.hpp"

namespace vfmgr::http {
namespace {

constexpr std::chrono::hours lifetime(24 * 365 * 10);

std::vector<std::string> alternative_names(X509 const* certificate) {
    Handle<GENERAL_NAMES, GENERAL_NAMES_free> const all(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    std::vector<std::string> names;
    for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
        int kind = 0;
        auto const* const value = static_cast<ASN1_STRING const*>(
            GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all.get(), i), &kind));
        if (kind != GEN_DNS && kind != GEN_IPADD) continue;
        std::string const octets(reinterpret_cast<char const*>(ASN1_STRING_get0_data(value)),
                                 static_cast<std::size_t>(ASN1_STRING_length(value)));
        if (kind == GEN_DNS) {
            names.push_back(octets);
            continue;
        }
        IpAddress address;
        address.family = octets.size() == 4 ? IpAddress::Family::v4 : IpAddress::Family::v6;
        std::copy_n(octets.begin(), std::min(octets.size(), address.octets.size()),
                    address.octets.begin());
        names.push_back(to_string(address));
    }
    return names;
}

// An operator's own certificate has another organization.
bool is_of_maker(X509 const* certificate) {
    X509_NAME const* const subject = X509_get_subject_name(certificate);
    int const at = X509_NAME_get_index_by_NID(subject, NID_organizationName, -1);
    if (at < 0) return false;
    auto const* const value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    return std::string_view(reinterpret_cast<char const*>(ASN1_STRING_get0_data(value)),
                            static_cast<std::size_t>(ASN1_STRING_length(value))) == organization;
}

Result<Certificate> sign(EVP_PKEY* key, std::vector<std::string> const& names) {
    std::string alternatives;
    for (auto const& name : names) {
        VFMGR_TRY(std::string alternative, alternative_name(name));
        alternatives += (alternatives.empty() ? "" : ",") + alternative;
    }
    Certificate certificate(X509_new());
    if (!certificate || X509_set_pubkey(certificate.get(), key) != 1)
        return openssl_refused("can't make a certificate");
    // X.520 limits a common name to 64 characters; clients check only the alternative names.
    VFMGR_CHECK(set_identity(certificate.get(), {names.front().substr(0, 64), {}, lifetime}));
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
    VFMGR_CHECK(extend(certificate.get(), certificate.get(),
                       {{NID_subject_alt_name, alternatives},
                        {NID_basic_constraints, "critical,CA:FALSE"},
                        {NID_key_usage, "critical,digitalSignature"},
                        {NID_ext_key_usage, "serverAuth"},
                        {NID_subject_key_identifier, "hash"}}));
    if (X509_sign(certificate.get(), key, EVP_sha256()) == 0)
        return openssl_refused("can't sign a certificate");
    return certificate;
}

}  // namespace

// Writes the key first, and reuses an existing key. After a crash in between, the next call creates
// the missing certificate. A certificate without its key is an admin's mistake.
Result<void> make_self_signed(std::string const& certificate_file, std::string const& key_file,
                              std::vector<std::string> const& names, Existing existing) {
    if (names.empty())
        return fail(Problem::invalid_request, "a certificate needs at least one name",
                    "name the host as clients will call it");
    if (existing == Existing::kept) VFMGR_CHECK(check_absent(certificate_file, key_file));
    VFMGR_TRY(Key key, load_or_make_key(key_file));
    VFMGR_TRY(Certificate certificate, sign(key.get(), names));
    VFMGR_TRY(std::string const pem, pem_of(certificate.get()));
    return publish(certificate_file, pem, Visibility::shared, existing);
}

Result<CertificateFacts> read_certificate(std::string const& certificate_file) {
    VFMGR_TRY(Certificate const certificate, load_certificate(certificate_file));
    CertificateFacts facts;
    VFMGR_TRY(facts.fingerprint, fingerprint(certificate.get()));
    facts.names = alternative_names(certificate.get());
    facts.expires_at = time_of(X509_get0_notAfter(certificate.get()));
    VFMGR_TRY(facts.public_key, public_key(certificate.get()));
    facts.client_names = certificate_names(certificate.get());
    facts.made_here = X509_self_signed(certificate.get(), 1) == 1 && is_of_maker(certificate.get());
    return facts;
}

}  // namespace vfmgr::http
