// SPDX-License-Identifier: Apache-2.0
// A CA of the tests' own: certificates of clients, and revocation lists, in files of a folder.
#pragma once

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "api/os/handle.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::test {

class Authority {
  public:
    struct Wanted {
        std::string common_name = "client";
        std::string alternatives{};         // "URI:spiffe://fleet/a,DNS:a.example"; empty: none
        std::string usage = "clientAuth";   // empty: any
        std::chrono::seconds lasts{3600};   // from now; negative: it has expired
        char const* constraints = nullptr;  // "critical,CA:TRUE": it may sign others
    };
    struct Issued {
        std::string certificate_file;
        std::string key_file;
        long serial = 0;
    };

    explicit Authority(std::string name = "ca")
        : name_(std::move(name)),
          key_(EVP_EC_gen("P-256")),
          own_(make({.common_name = name_,
                     .usage = "",
                     .lasts = std::chrono::hours(24),
                     .constraints = "critical,CA:TRUE"},
                    key_.get(), nullptr, key_.get())) {
        write(certificate_file(), own_.get());
    }
    [[nodiscard]] std::string certificate_file() const { return folder_.file(name_ + ".pem"); }
    [[nodiscard]] std::string file(std::string const& name) const { return folder_.file(name); }

    [[nodiscard]] Issued issue(Wanted const& wanted) {
        Key const key(EVP_EC_gen("P-256"));
        auto const certificate = make(wanted, key.get(), own_.get(), key_.get());
        auto const stem = std::to_string(serial_);
        Issued issued{file(stem + ".crt"), file(stem + ".key"), serial_};
        write(issued.certificate_file, certificate.get());
        File const out(std::fopen(issued.key_file.c_str(), "w"));
        EXPECT_EQ(PEM_write_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
                  1);
        return issued;
    }
    // Replaces the list of what it has revoked.
    std::string revoke(std::vector<long> const& serials,
                       std::chrono::seconds next_update = std::chrono::hours(1)) const {
        Handle<X509_CRL, X509_CRL_free> const list(X509_CRL_new());
        X509_CRL_set_version(list.get(), 1);
        X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(own_.get()));
        Handle<ASN1_TIME, ASN1_TIME_free> const now(X509_gmtime_adj(nullptr, -7200));
        Handle<ASN1_TIME, ASN1_TIME_free> const next(X509_gmtime_adj(nullptr, next_update.count()));
        X509_CRL_set1_lastUpdate(list.get(), now.get());
        X509_CRL_set1_nextUpdate(list.get(), next.get());
        for (long const serial : serials) {
            auto* const revoked = X509_REVOKED_new();
            Handle<ASN1_INTEGER, ASN1_INTEGER_free> const number(ASN1_INTEGER_new());
            ASN1_INTEGER_set(number.get(), serial);
            X509_REVOKED_set_serialNumber(revoked, number.get());
            X509_REVOKED_set_revocationDate(revoked, now.get());
            X509_CRL_add0_revoked(list.get(), revoked);
        }
        EXPECT_NE(X509_CRL_sign(list.get(), key_.get(), EVP_sha256()), 0);
        auto const path = file(name_ + ".crl");
        File const out(std::fopen(path.c_str(), "w"));
        EXPECT_EQ(PEM_write_X509_CRL(out.get(), list.get()), 1);
        return path;
    }

  private:
    using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
    using Certificate = Handle<X509, X509_free>;
    using File = Handle<std::FILE, std::fclose>;

    Certificate make(Wanted const& wanted, EVP_PKEY* key, X509* issuer, EVP_PKEY* signing) {
        Certificate certificate(X509_new());
        auto* const made = certificate.get();
        if (!issuer) issuer = made;
        X509_set_version(made, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial_);
        X509_gmtime_adj(X509_getm_notBefore(made), -7200);
        X509_gmtime_adj(X509_getm_notAfter(made), wanted.lasts.count());
        X509_set_pubkey(made, key);
        if (!wanted.common_name.empty())
            X509_NAME_add_entry_by_txt(
                X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                reinterpret_cast<unsigned char const*>(wanted.common_name.c_str()), -1, -1, 0);
        X509_set_issuer_name(made, X509_get_subject_name(issuer));
        extend(made, issuer, NID_subject_alt_name, wanted.alternatives);
        extend(made, issuer, NID_ext_key_usage, wanted.usage);
        if (wanted.constraints) extend(made, issuer, NID_basic_constraints, wanted.constraints);
        EXPECT_NE(X509_sign(made, signing, EVP_sha256()), 0);
        return certificate;
    }
    static void extend(X509* made, X509* issuer, int nid, std::string const& value) {
        if (value.empty()) return;
        X509V3_CTX context{};
        X509V3_set_ctx_nodb(&context);
        X509V3_set_ctx(&context, issuer, made, nullptr, nullptr, 0);
        Handle<X509_EXTENSION, X509_EXTENSION_free> const extension(
            X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
        EXPECT_TRUE(extension) << value;
        X509_add_ext(made, extension.get(), -1);
    }
    static void write(std::string const& path, X509* certificate) {
        File const out(std::fopen(path.c_str(), "w"));
        EXPECT_EQ(PEM_write_X509(out.get(), certificate), 1);
    }

    TemporaryFolder folder_;
    std::string name_;
    long serial_ = 0;
    Key key_;
    Certificate own_;
};

}  // namespace vfmgr::test
