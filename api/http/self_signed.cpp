// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "api/http/http.hpp"
#include "api/http/tls.hpp"
#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"

namespace vfmgr::http {
namespace {

using Extension = Handle<X509_EXTENSION, X509_EXTENSION_free>;
using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
using Memory = Handle<BIO, BIO_free>;

constexpr std::string_view maker = "vfmgr";  // the organization in the certificate
constexpr long lifetime_seconds = 10L * 365 * 24 * 3600;

tl::unexpected<Error> openssl_refused(std::string detail) {
    Error error{Problem::internal, std::move(detail), "check the host's OpenSSL and its policy"};
    error.causes.push_back({"OpenSSL", {}, take_ssl_error()});
    return fail(std::move(error));
}

tl::unexpected<Error> file_refused(std::string call, std::string const& path) {
    int const error = errno;
    Error out{Problem::kernel_refused,
              fmt::format("can't write {}: {}", path, std::strerror(error)),
              "make its folder writable for the daemon, with free space"};
    out.causes.push_back(errno_cause(std::move(call), error));
    return fail(std::move(out));
}

// Returns "DNS:host" or "IP:10.0.0.1". OpenSSL parses it, so a name must not hold separators.
Result<std::string> alternative_name(std::string const& name) {
    if (IpAddress::parse(name)) return "IP:" + name;
    constexpr auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._*";
    if (name.empty() || name.find_first_not_of(allowed) != std::string::npos)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' is neither a host name nor an IP address", name),
                    "name the host as clients will call it");
    return "DNS:" + name;
}

Result<void> add_extension(X509* certificate, int nid, std::string const& value) {
    X509V3_CTX context{};
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    Extension const extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
        return openssl_refused(fmt::format("can't put '{}' into a certificate", value));
    return {};
}

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
                            static_cast<std::size_t>(ASN1_STRING_length(value))) == maker;
}

Result<void> set_identity(X509* certificate, std::string const& common_name) {
    unsigned char serial[16] = {};
    auto const* text = reinterpret_cast<unsigned char const*>(common_name.c_str());
    bool fits = RAND_bytes(serial, sizeof serial) == 1;
    serial[0] &= 0x7f;  // serial numbers are positive (RFC 5280, 4.1.2.2)
    Handle<BIGNUM, BN_free> const number(BN_bin2bn(serial, sizeof serial, nullptr));
    X509_NAME* const subject = X509_get_subject_name(certificate);
    fits = fits && number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) &&
           X509_set_version(certificate, X509_VERSION_3) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
                                      reinterpret_cast<unsigned char const*>(maker.data()), -1, -1,
                                      0) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, subject) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), 0) &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), lifetime_seconds);
    if (!fits) return openssl_refused("can't fill in a certificate");
    return {};
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
    VFMGR_CHECK(set_identity(certificate.get(), names.front().substr(0, 64)));
    VFMGR_CHECK(add_extension(certificate.get(), NID_subject_alt_name, alternatives));
    VFMGR_CHECK(add_extension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE"));
    VFMGR_CHECK(add_extension(certificate.get(), NID_key_usage, "critical,digitalSignature"));
    VFMGR_CHECK(add_extension(certificate.get(), NID_ext_key_usage, "serverAuth"));
    VFMGR_CHECK(add_extension(certificate.get(), NID_subject_key_identifier, "hash"));
    if (X509_sign(certificate.get(), key, EVP_sha256()) == 0)
        return openssl_refused("can't sign a certificate");
    return certificate;
}

std::string text_of(BIO* memory) {
    char* data = nullptr;
    auto const size = BIO_get_mem_data(memory, &data);
    return {data, static_cast<std::size_t>(size)};
}

enum class Visibility : mode_t { secret = 0600, shared = 0644 };

// Publishes the file whole and with its final mode, or not at all.
Result<void> publish(std::string const& path, std::string const& content, Visibility visibility,
                     Existing existing) {
    unsigned const over = existing == Existing::kept ? RENAME_NOREPLACE : 0;
    auto const temporary = fmt::format("{}.{}.new", path, ::getpid());
    ::unlink(temporary.c_str());
    FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                             static_cast<mode_t>(visibility)));
    if (!fd) return file_refused("open", temporary);
    bool const written =
        // The umask may have cleared bits of 0644; it never adds any to 0600.
        ::fchmod(fd.get(), static_cast<mode_t>(visibility)) == 0 &&
        ::write(fd.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
        ::fsync(fd.get()) == 0 &&
        ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), over) == 0;
    if (written) return {};
    auto refused = file_refused("write", path);
    ::unlink(temporary.c_str());
    return refused;
}

Result<Key> load_or_make_key(std::string const& key_file) {
    if (Handle<FILE, ::fclose> const file(::fopen(key_file.c_str(), "re")); file) {
        Key key(PEM_read_PrivateKey(file.get(), nullptr, nullptr, nullptr));
        if (!key) return openssl_refused(fmt::format("{} holds no private key", key_file));
        return key;
    }
    Key key(EVP_EC_gen("P-256"));
    Memory const pem(BIO_new(BIO_s_mem()));
    if (!key || !pem ||
        PEM_write_bio_PKCS8PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) != 1)
        return openssl_refused("can't make an ECDSA P-256 key");
    VFMGR_CHECK(publish(key_file, text_of(pem.get()), Visibility::secret, Existing::kept));
    return key;
}

}  // namespace

// Writes the key first, and reuses an existing key. After a crash in between, the next call creates
// the missing certificate. A certificate without its key is an admin's mistake.
Result<void> make_self_signed(std::string const& certificate_file, std::string const& key_file,
                              std::vector<std::string> const& names, Existing existing) {
    if (names.empty())
        return fail(Problem::invalid_request, "a certificate needs at least one name",
                    "name the host as clients will call it");
    std::error_code ignored;
    if (existing == Existing::kept && std::filesystem::exists(certificate_file, ignored))
        return fail(Problem::conflict, fmt::format("{} exists already", certificate_file),
                    fmt::format("use it with its key {}, or move it away", key_file));
    VFMGR_TRY(Key key, load_or_make_key(key_file));
    VFMGR_TRY(Certificate certificate, sign(key.get(), names));
    Memory const pem(BIO_new(BIO_s_mem()));
    if (!pem || PEM_write_bio_X509(pem.get(), certificate.get()) != 1)
        return openssl_refused("can't write a certificate");
    return publish(certificate_file, text_of(pem.get()), Visibility::shared, existing);
}

Result<CertificateFacts> read_certificate(std::string const& certificate_file) {
    VFMGR_TRY(Certificate const certificate, load_certificate(certificate_file));
    CertificateFacts facts;
    VFMGR_TRY(facts.fingerprint, fingerprint(certificate.get()));
    facts.names = alternative_names(certificate.get());
    facts.expires_at = time_of(X509_get0_notAfter(certificate.get()));
    facts.made_here = X509_self_signed(certificate.get(), 1) == 1 && is_of_maker(certificate.get());
    return facts;
}

}  // namespace vfmgr::http
