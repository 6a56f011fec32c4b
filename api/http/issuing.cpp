// SPDX-License-Identifier: Apache-2.0
#include "api/http/issuing.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"

namespace vfmgr::http {
namespace {

tl::unexpected<Error> file_refused(std::string call, std::string const& path) {
    int const error = errno;
    Error out{Problem::kernel_refused,
              fmt::format("can't write {}: {}", path, std::strerror(error)),
              "make its folder writable for the daemon, with free space"};
    out.causes.push_back(errno_cause(std::move(call), error));
    return fail(std::move(out));
}

std::string text_of(BIO* memory) {
    char* data = nullptr;
    auto const size = BIO_get_mem_data(memory, &data);
    return {data, static_cast<std::size_t>(size)};
}

}  // namespace

tl::unexpected<Error> openssl_refused(std::string detail) {
    Error error{Problem::internal, std::move(detail), "check the host's OpenSSL and its policy"};
    error.causes.push_back({"OpenSSL", {}, take_ssl_error()});
    return fail(std::move(error));
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

Result<void> extend(X509* certificate, X509* issuer,
                    std::vector<std::pair<int, std::string>> const& extensions) {
    X509V3_CTX context{};
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    for (auto const& [nid, value] : extensions) {
        Handle<X509_EXTENSION, X509_EXTENSION_free> const extension(
            X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
        if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
            return openssl_refused(fmt::format("can't put '{}' into a certificate", value));
    }
    return {};
}

Result<void> set_identity(X509* certificate, CertificateIdentity const& identity) {
    unsigned char serial[16] = {};
    auto const* const name = reinterpret_cast<unsigned char const*>(identity.common_name.c_str());
    auto const* const maker = reinterpret_cast<unsigned char const*>(organization.data());
    bool fits = RAND_bytes(serial, sizeof serial) == 1;
    serial[0] &= 0x7f;  // serial numbers are positive (RFC 5280, 4.1.2.2)
    Handle<BIGNUM, BN_free> const number(BN_bin2bn(serial, sizeof serial, nullptr));
    X509_NAME* const subject = X509_get_subject_name(certificate);
    fits = fits && number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) &&
           X509_set_version(certificate, X509_VERSION_3) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, maker, -1, -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -identity.backdated.count()) &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), identity.lasts.count());
    if (!fits) return openssl_refused("can't fill in a certificate");
    return {};
}

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

Result<Key> load_key(std::string const& key_file) {
    Handle<FILE, ::fclose> const file(::fopen(key_file.c_str(), "re"));
    if (!file) {
        int const error = errno;
        Error out{Problem::not_found,
                  fmt::format("can't open the key {}: {}", key_file, std::strerror(error)),
                  "give a readable file with the key, PEM"};
        out.causes.push_back(errno_cause("open", error));
        return fail(std::move(out));
    }
    Key key(PEM_read_PrivateKey(file.get(), nullptr, nullptr, nullptr));
    if (!key) return openssl_refused(fmt::format("{} holds no private key", key_file));
    return key;
}

Result<Key> load_or_make_key(std::string const& key_file) {
    if (::access(key_file.c_str(), F_OK) == 0) return load_key(key_file);
    Key key(EVP_EC_gen("P-256"));
    Handle<BIO, BIO_free> const pem(BIO_new(BIO_s_mem()));
    if (!key || !pem ||
        PEM_write_bio_PKCS8PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) != 1)
        return openssl_refused("can't make an ECDSA P-256 key");
    VFMGR_CHECK(publish(key_file, text_of(pem.get()), Visibility::secret, Existing::kept));
    return key;
}

Result<void> check_absent(std::string const& certificate_file, std::string const& key_file) {
    std::error_code ignored;
    if (!std::filesystem::exists(certificate_file, ignored)) return {};
    return fail(Problem::conflict, fmt::format("{} exists already", certificate_file),
                fmt::format("use it with its key {}, or move it away", key_file));
}

}  // namespace vfmgr::http
