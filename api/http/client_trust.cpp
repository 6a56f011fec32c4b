// SPDX-License-Identifier: Apache-2.0
// Which certificates of clients a server accepts, and by which CA.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include "api/http/tls.hpp"

namespace vfmgr::http {
namespace {

using Store = Handle<X509_STORE, X509_STORE_free>;
using Verification = Handle<X509_STORE_CTX, X509_STORE_CTX_free>;

// OpenSSL takes a certificate without an extended key usage for any purpose.
int demand_client_use(int verified, X509_STORE_CTX* verification) {
    if (verified != 1 || X509_STORE_CTX_get_error_depth(verification) != 0) return verified;
    X509* const shown = X509_STORE_CTX_get_current_cert(verification);
    bool const limited = (X509_get_extension_flags(shown) & EXFLAG_XKUSAGE) != 0;
    if (limited && (X509_get_extended_key_usage(shown) & XKU_SSL_CLIENT) != 0) return 1;
    X509_STORE_CTX_set_error(verification, X509_V_ERR_INVALID_PURPOSE);
    return 0;
}

Result<void> check_revocation(X509_STORE* store, std::string const& crl_file) {
    X509_LOOKUP* const lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, crl_file.c_str(), X509_FILETYPE_PEM) < 1)
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't load the revocation lists in {}", crl_file),
                              "give a PEM file with a list of each CA"));
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return {};
}

Result<void> trust_ca_file(SSL_CTX* context, TlsListen const& where) {
    auto* const accepted = SSL_load_client_CA_file(where.client_ca_file.c_str());
    if (!accepted || SSL_CTX_load_verify_file(context, where.client_ca_file.c_str()) != 1) {
        sk_X509_NAME_pop_free(accepted, X509_NAME_free);
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't load the client CAs in {}", where.client_ca_file),
                              "give a PEM file with the CA's certificate"));
    }
    // Sent to clients: one with several certificates then knows which to show.
    SSL_CTX_set_client_CA_list(context, accepted);
    X509_STORE* const store = SSL_CTX_get_cert_store(context);
    // An intermediate CA in the file is trusted for itself; its root may have signed others.
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    if (!where.client_crl_file.empty()) return check_revocation(store, where.client_crl_file);
    return {};
}

bool has_key_of(X509_STORE* store, X509 const* ca) {
    auto const* const all = X509_STORE_get0_objects(store);
    for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
        X509* const one = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (one && EVP_PKEY_eq(X509_get0_pubkey(one), X509_get0_pubkey(ca)) == 1) return true;
    }
    return false;
}

void free_store(void*, void* store, CRYPTO_EX_DATA*, int, long, void*) {
    X509_STORE_free(static_cast<X509_STORE*>(store));
}

// Where a context keeps what it trusts for the fleet: a store of its own, so that no chain mixes
// both, and so that the flags for revocation lists stay with the other CAs.
int fleet_store_index() {
    static int const index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_store);
    return index;
}

X509_STORE* fleet_store(SSL_CTX const* context) {
    return static_cast<X509_STORE*>(SSL_CTX_get_ex_data(context, fleet_store_index()));
}

// As OpenSSL does it in a handshake. Null: there is nothing to verify with.
Verification verify(X509_STORE* store, X509* shown, STACK_OF(X509) * chain, int security_level) {
    if (!store) return nullptr;
    Verification verification(X509_STORE_CTX_new());
    if (!verification || X509_STORE_CTX_init(verification.get(), store, shown, chain) != 1 ||
        X509_STORE_CTX_set_default(verification.get(), "ssl_client") != 1)
        return nullptr;
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(verification.get()), security_level);
    X509_STORE_CTX_set_verify_cb(verification.get(), demand_client_use);
    X509_verify_cert(verification.get());
    return verification;
}

bool accepts(Verification const& verification) {
    return verification && X509_STORE_CTX_get_error(verification.get()) == X509_V_OK &&
           X509_STORE_CTX_get0_chain(verification.get());
}

// It belongs to another CA.
bool found_no_issuer(int error) {
    constexpr std::array none{
        X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
        X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE};
    return std::ranges::find(none, error) != none.end();
}

// The fleet's CA comes first: what it has signed is the fleet's, whoever has signed the same key.
int verify_by_fleet_or_file(X509_STORE_CTX* handshake, void* store) {
    auto const by_fleet =
        verify(static_cast<X509_STORE*>(store), X509_STORE_CTX_get0_cert(handshake),
               X509_STORE_CTX_get0_untrusted(handshake),
               X509_VERIFY_PARAM_get_auth_level(X509_STORE_CTX_get0_param(handshake)));
    if (accepts(by_fleet)) {
        X509_STORE_CTX_set0_verified_chain(handshake, X509_STORE_CTX_get1_chain(by_fleet.get()));
        X509_STORE_CTX_set_error(handshake, X509_V_OK);
        return 1;
    }
    if (X509_verify_cert(handshake) == 1) return 1;
    int const why = by_fleet ? X509_STORE_CTX_get_error(by_fleet.get()) : X509_V_OK;
    if (why != X509_V_OK && !found_no_issuer(why)) X509_STORE_CTX_set_error(handshake, why);
    return 0;
}

Result<void> trust_fleet(SSL_CTX* context, std::string const& ca_file) {
    auto const refused = [&](std::string const& why) {
        return fail(tls_error(Problem::invalid_request,
                              fmt::format("can't use the fleet's CA in {}: {}", ca_file, why),
                              "give a PEM file with the CA's certificate, or leave the fleet"));
    };
    auto const ca = load_certificate(ca_file);
    if (!ca) return refused(ca.error().detail);
    if (X509_check_ca(ca->get()) != 1) return refused("it is no CA's certificate");
    if (SSL_CTX_add_client_CA(context, ca->get()) != 1) return refused("OpenSSL refuses it");
    if (has_key_of(SSL_CTX_get_cert_store(context), ca->get())) return {};
    Store store(X509_STORE_new());
    if (!store || X509_STORE_add_cert(store.get(), ca->get()) != 1 ||
        X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN) != 1 ||
        SSL_CTX_set_ex_data(context, fleet_store_index(), store.get()) != 1)
        return refused("OpenSSL refuses it");
    SSL_CTX_set_cert_verify_callback(context, verify_by_fleet_or_file, store.release());
    return {};
}

// Empty: it ends nowhere.
std::string end_of(STACK_OF(X509) const* chain) {
    int const size = sk_X509_num(chain);
    if (size < 1) return {};
    return fingerprint(sk_X509_value(chain, size - 1)).value_or("");
}

}  // namespace

Result<void> trust_clients(SSL_CTX* context, TlsListen const& where) {
    if (where.client_ca_file.empty() && where.fleet_ca_file.empty()) return {};
    ERR_clear_error();
    if (!where.client_ca_file.empty()) VFMGR_CHECK(trust_ca_file(context, where));
    if (!where.fleet_ca_file.empty()) VFMGR_CHECK(trust_fleet(context, where.fleet_ca_file));
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, demand_client_use);
    return {};
}

std::optional<PeerCertificate> peer_certificate(SSL const* session) {
    Certificate const shown(SSL_get1_peer_certificate(session));
    if (!shown) return std::nullopt;
    return PeerCertificate{certificate_names(shown.get()), time_of(X509_get0_notAfter(shown.get())),
                           end_of(SSL_get0_verified_chain(session))};
}

bool still_verifies(SSL* session, SSL_CTX* trust) {
    Certificate const shown(SSL_get1_peer_certificate(session));
    // In the middle of a handshake: what comes is verified by what is trusted now.
    bool const may_come = !shown && SSL_in_init(session) == 1;
    if (may_come) return SSL_set_SSL_CTX(session, trust) == trust;
    if (!shown) return true;
    auto const before = end_of(SSL_get0_verified_chain(session));
    for (auto* const store : {fleet_store(trust), SSL_CTX_get_cert_store(trust)}) {
        auto const now = verify(store, shown.get(), SSL_get_peer_cert_chain(session),
                                SSL_get_security_level(session));
        if (accepts(now)) return end_of(X509_STORE_CTX_get0_chain(now.get())) == before;
    }
    return false;
}

}  // namespace vfmgr::http
