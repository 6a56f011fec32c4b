// SPDX-License-Identifier: Apache-2.0
#include "api/http/authority.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "api/http/issuing.hpp"

namespace vfmgr::http {
namespace {

constexpr std::chrono::hours authority_lasts(24 * 365 * 20);
constexpr std::chrono::hours clocks_late_max(1);

Result<void> check_common_name(std::string const& name) {
    if (valid_certificate_name(name) && name.size() <= common_name_characters_max) return {};
    return fail(Problem::invalid_request,
                fmt::format("'{}' can't be a certificate's common name", name),
                fmt::format("give 1 to {} visible ASCII characters", common_name_characters_max));
}

// RFC 3986, 2, without the comma, at which OpenSSL would begin another name.
Result<std::string> alternative_uri(std::string const& uri) {
    constexpr auto allowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&'()*+;=%";
    auto const scheme = uri.find(':');
    if (scheme != std::string::npos && scheme > 0 && valid_certificate_name(uri) &&
        uri.find_first_not_of(allowed) == std::string::npos)
        return "URI:" + uri;
    return fail(Problem::invalid_request, fmt::format("'{}' is not a URI", uri),
                "give one such as vfmgr://fleet/replica/name");
}

Result<std::string> alternatives_of(CertificateRequest const& request) {
    std::string all;
    for (auto const& uri : request.uris) {
        VFMGR_TRY(std::string const one, alternative_uri(uri));
        all += (all.empty() ? "" : ",") + one;
    }
    for (auto const& name : request.names) {
        VFMGR_TRY(std::string const one, alternative_name(name));
        all += (all.empty() ? "" : ",") + one;
    }
    return all;
}

Result<Certificate> new_certificate(EVP_PKEY* key, CertificateIdentity const& identity) {
    Certificate certificate(X509_new());
    if (!certificate || X509_set_pubkey(certificate.get(), key) != 1)
        return openssl_refused("can't make a certificate");
    VFMGR_CHECK(set_identity(certificate.get(), identity));
    return certificate;
}

Result<void> sign_by(EVP_PKEY* issuer_key, X509* certificate) {
    if (X509_sign(certificate, issuer_key, EVP_sha256()) != 0) return {};
    return openssl_refused("can't sign a certificate");
}

struct Signer {
    Certificate certificate;
    Key key;
};

Result<Signer> load(CertificateAuthority const& authority) {
    VFMGR_TRY(Certificate certificate, load_certificate(authority.certificate_file));
    VFMGR_TRY(Key key, load_key(authority.key_file));
    if (X509_check_ca(certificate.get()) != 1)
        return fail(Problem::invalid_request,
                    fmt::format("{} is no CA's certificate", authority.certificate_file),
                    "give the CA that vfctl fleet init made");
    if (X509_check_private_key(certificate.get(), key.get()) != 1)
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("the key {} does not belong to the CA {}",
                                          authority.key_file, authority.certificate_file),
                              "give the CA's own key"));
    return Signer{std::move(certificate), std::move(key)};
}

Result<void> check_use(CertificateRequest const& request) {
    VFMGR_CHECK(check_common_name(request.common_name));
    if (!request.for_servers && !request.for_clients)
        return fail(Problem::invalid_request,
                    fmt::format("the certificate of {} would be for neither servers nor clients",
                                request.common_name),
                    "choose one use at least");
    if (request.lasts.count() < 1)
        return fail(Problem::invalid_request,
                    fmt::format("a certificate can't last {} days", request.lasts.count()),
                    "give 1 day or more");
    return {};
}

Result<Certificate> sign_for(Signer const& signer, EVP_PKEY* key,
                             CertificateRequest const& request) {
    VFMGR_TRY(std::string const alternatives, alternatives_of(request));
    VFMGR_TRY(Certificate certificate,
              new_certificate(key, {request.common_name, clocks_late_max, request.lasts}));
    std::string use = request.for_servers ? "serverAuth" : "";
    if (request.for_clients) use += use.empty() ? "clientAuth" : ",clientAuth";
    std::vector<std::pair<int, std::string>> extensions{
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, use},
        {NID_subject_key_identifier, "hash"}};
    X509* const issuer = signer.certificate.get();
    if (X509_get0_subject_key_id(issuer))
        extensions.emplace_back(NID_authority_key_identifier, "keyid");
    if (!alternatives.empty()) extensions.emplace_back(NID_subject_alt_name, alternatives);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
    VFMGR_CHECK(extend(certificate.get(), issuer, extensions));
    VFMGR_CHECK(sign_by(signer.key.get(), certificate.get()));
    return certificate;
}

Result<void> make_folder(std::string const& folder) {
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
    int const error = errno;
    Error out{Problem::kernel_refused,
              fmt::format("can't make the folder {}: {}", folder, std::strerror(error)),
              "name a folder whose parent exists and is writable"};
    out.causes.push_back(errno_cause("mkdir", error));
    return fail(std::move(out));
}

}  // namespace

// Writes the key first, and reuses an existing key: after a crash in between, the next call makes
// the missing certificate.
Result<CertificateAuthority> make_authority(std::string const& folder, std::string const& name) {
    VFMGR_CHECK(check_common_name(name));
    VFMGR_CHECK(make_folder(folder));
    CertificateAuthority const made{folder + "/ca.pem", folder + "/ca.key"};
    VFMGR_CHECK(check_absent(made.certificate_file, made.key_file));
    VFMGR_TRY(Key const key, load_or_make_key(made.key_file));
    VFMGR_TRY(Certificate const certificate,
              new_certificate(key.get(), {name, clocks_late_max, authority_lasts}));
    X509* const own = certificate.get();
    X509_set_issuer_name(own, X509_get_subject_name(own));
    VFMGR_CHECK(extend(own, own,
                       {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                        {NID_key_usage, "critical,keyCertSign,cRLSign"},
                        {NID_subject_key_identifier, "hash"}}));
    VFMGR_CHECK(sign_by(key.get(), own));
    VFMGR_TRY(std::string const pem, pem_of(own));
    VFMGR_CHECK(publish(made.certificate_file, pem, Visibility::shared, Existing::kept));
    return made;
}

Result<void> issue(CertificateAuthority const& authority, CertificateRequest const& request,
                   IssuedFiles const& into, Existing existing) {
    VFMGR_CHECK(check_use(request));
    if (existing == Existing::kept) VFMGR_CHECK(check_absent(into.certificate_file, into.key_file));
    VFMGR_TRY(Signer const signer, load(authority));
    VFMGR_TRY(Key const key, load_or_make_key(into.key_file));
    VFMGR_TRY(Certificate const certificate, sign_for(signer, key.get(), request));
    VFMGR_TRY(std::string const leaf, pem_of(certificate.get()));
    VFMGR_TRY(std::string const ca, pem_of(signer.certificate.get()));
    return publish(into.certificate_file, leaf + ca, Visibility::shared, existing);
}

}  // namespace vfmgr::http
