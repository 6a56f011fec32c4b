// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 with JSON over unix sockets, TLS and vsock. This header hides all of Beast, which is
// used in connection.cpp, parser.cpp and gzip.cpp. A Server and its io thread belong to the code
// that creates it; a Client belongs to one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::http {

// The peer's identity, taken from the socket itself.
struct UnixPeer {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::int32_t pid = 0;
    std::vector<std::uint32_t> groups{};  // supplementary; the process's at connect time
};
// What the client certificate says that the server has verified.
struct PeerCertificate {
    // All names of the first kind that it has: URIs, DNS names, its one common name. Only those of
    // valid_certificate_name(); empty if it has none.
    std::vector<std::string> names{};
    Time expires_at{};
    // SHA-256 of the CA certificate (DER, hex) at which the verified chain ends: one that is in
    // client_ca_file or fleet_ca_file. Two CAs may both have signed one name; this tells them
    // apart.
    std::string authority{};
};
struct TcpPeer {
    std::string address{};
    std::optional<PeerCertificate> certificate{};  // absent: the client showed none
    std::string reached_at{};                      // the address of this host that it connected to
};
struct VsockPeer {
    std::uint32_t cid = 0;
    std::uint32_t port = 0;  // below 1024: a privileged process in the guest
};
using Peer = std::variant<UnixPeer, TcpPeer, VsockPeer>;

// A peer that a handler has authenticated.
struct Known {
    std::string name;               // its connections share the places of this name
    std::function<bool()> holds{};  // whether it still may what it might; empty: it may
};

// Connection state that a later answer needs. The connection and its requests share it.
struct Presence {
    std::atomic<bool> gone = false;  // the peer has left and takes no answer; any thread
    std::optional<Known> known{};    // io thread only, as the next
    // Finds a place among those of a name; fails with unavailable if it has them all. Empty: there
    // is nothing to share.
    std::function<Result<void>(std::string const& name)> take_place{};
};
// Chooses connections.
using Which = std::function<bool(Peer const&, Presence const&)>;

struct Request {
    std::string method;  // "GET"; HEAD arrives as GET, and its answer is sent without the body
    std::string path{};  // decoded, without query
    std::map<std::string, std::string> query;
    // Names in lower case; repeated fields joined with ", ". x-request-id is always present.
    std::map<std::string, std::string> headers;
    std::string body;
    Peer peer;
    std::shared_ptr<Presence> presence{};  // null: not received by a server
};

// A part of a stream's body: one text, which all of its readers share.
using Frame = std::shared_ptr<std::string const>;

// A body that goes on until one side ends it. The connection asks for the next part when its peer
// has taken the last one, so a slow reader costs no more than a fast one. Every function is called
// on the io thread; all of them are destroyed when the peer has gone.
struct Stream {
    // beat: the peer got nothing for the time of a heartbeat.
    enum class Due { more, beat };
    // Returns what comes next. Empty: nothing so far. Absent: the stream ends.
    std::function<std::optional<std::vector<Frame>>(Due)> next{};
    // Called once, with what to call on the io thread when `next` has more, or has to end.
    std::function<void(std::function<void()> wake)> begin{};
    std::chrono::milliseconds heartbeat{15'000};
};

struct Response {
    int status = 200;
    std::map<std::string, std::string> headers{};  // from a Client: names in lower case
    std::string body{};
    Frame text{};  // in place of `body`: one that many answers share
    std::string content_type = "application/json";
    std::chrono::milliseconds hold{0};  // a server delays the answer by this, to slow down a flood
    std::shared_ptr<Stream const> stream{};  // in place of `body`
};

// Called once, from any thread, at any time after the handler was called. Does nothing if the
// client or the server is gone. If every copy is dropped without a call, the client gets 500.
using Respond = std::function<void(Response)>;
using Handler = std::function<void(Request, Respond)>;

// Makes the peer known that sent this request. For a handler, before it returns.
[[nodiscard]] Result<void> make_known(Request const& request, Known known);
// Chooses the connections of peers that are known but no longer may what they might.
[[nodiscard]] bool lapsed(Peer const& peer, Presence const& presence);

struct Limits {
    std::size_t body_bytes_max = 256 * 1024;
    std::size_t header_bytes_max = 16 * 1024;
    // Per listener; places.hpp divides them. With TLS, of peers that a handler knows. A connection
    // with a stream does not count: who makes streams limits them.
    std::size_t connections_max = 256;
    std::size_t connections_per_peer_max = 32;  // by name; before one is known, by uid or CID
    std::chrono::seconds read_seconds_max{30};  // a whole request; taking a whole answer
    std::chrono::seconds idle_seconds_max{120};
    std::chrono::seconds answer_seconds_max{300};
    // With TLS: unauthenticated ones, which have places of their own: half as many as
    // connections_max for addresses from which a client has authenticated, and another half for all
    // others, each of which may have this many.
    std::size_t strangers_per_peer_max = 8;
    std::chrono::seconds first_request_seconds_max{10};  // from accept, handshake included
};

struct UnixListen {
    std::string path{};
    std::string group{};  // empty: keep
    unsigned mode = 0660;
};
struct TlsListen {
    std::string address{};
    std::uint16_t port = 8470;
    std::string certificate_file{};  // PEM
    std::string key_file{};          // PEM
    // PEM: the CAs whose client certificates are accepted. Empty: no client is asked for one. A
    // client may always come without.
    std::string client_ca_file{};
    // PEM: a current revocation list of each CA in a certificate's chain. Empty: none is checked.
    std::string client_crl_file{};
    // PEM: one more CA whose client certificates are accepted, for which no revocation list is
    // asked. A chain ends in one of the two files, never in both. A CA that is in client_ca_file,
    // too, counts as one of that file. Empty: there is none.
    std::string fleet_ca_file{};
    // Takes only what comes over this netdev, and listens even before it has the address. Empty:
    // any.
    std::string interface{};
    int ifindex = 0;  // of it: a netdev made anew needs another listener
    bool operator==(TlsListen const&) const = default;
};
// privileged: source ports below 1024, which only root in the VM can bind. The guest plane requires
// them.
enum class SourcePort { any, privileged };
struct InheritedListen {  // a listening descriptor from systemd, of a unix or vsock socket
    int fd = -1;
    SourcePort source = SourcePort::any;  // connections from other ports are refused at accept
};
using Listen = std::variant<UnixListen, InheritedListen, TlsListen>;

// Called on the io thread with an exception it caught, which ended at most one connection.
using OnBug = std::function<void(std::string const& what)>;

// Owns the io thread and every connection. Call start() and stop() from the owner's thread.
class Server {
  public:
    explicit Server(Limits limits, OnBug on_bug = [](std::string const&) {});
    ~Server();
    Server(Server const&) = delete;
    Server& operator=(Server const&) = delete;
    // Adds a listener. Its requests go to `handler` on the io thread, which must not block.
    [[nodiscard]] Result<void> listen(Listen const& where, Handler handler);
    // Ends a listener and its connections.
    void unlisten(TlsListen const& where);
    // Calls `report` on the io thread for each connection turned away. Set it before start().
    void on_turned_away(std::function<void(Peer const&, Error const&)> report);
    void start();
    void stop();
    // Stops accepting, waits up to `patience` for answers in progress, answers the rest with 503,
    // and stops.
    void finish(std::chrono::milliseconds patience);
    // Closes the connections that are chosen, whatever they wait for; one that is being answered
    // ends with that answer. `which` is called on the io thread.
    void cut(Which which);
    // Serves new TLS connections with these files, and closes those whose client certificate these
    // CAs and revocation lists no longer accept. Fails before it changes anything.
    [[nodiscard]] Result<void> renew(TlsListen const& files);
    // Applies to new connections, and the numbers of places at once.
    void limit(Limits const& limits);
    // Returns a function that runs work on the io thread, or drops it once the server has stopped.
    // It may outlive the server; any thread may call it.
    [[nodiscard]] std::function<void(std::function<void()>)> io_post() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct UnixTarget {
    std::string path{};
};
struct TlsTarget {
    std::string host{};
    std::uint16_t port = 8470;
    // What the server must show; one of them at least, and each that is given counts. A pin, which
    // is all but ca_file, is checked before anything of a request is sent.
    std::string ca_file{};        // PEM: the CAs of which one has signed its certificate
    std::string fingerprint{};    // SHA-256 of its certificate (DER), hex
    std::string local_address{};  // to connect from; empty: the kernel's choice
    // PEM: what this client shows of itself; both or neither.
    std::string certificate_file{};
    std::string key_file{};
    // SHA-256 of its SubjectPublicKeyInfo (DER), hex: holds for every certificate with this key.
    std::string public_key{};
    // SHA-256 of a CA certificate (DER), hex, that the server sends in its chain and that has
    // signed its certificate for `host`. For a client that has no more than this hash of the CA.
    std::string ca_sha256{};
    auto operator<=>(TlsTarget const&) const = default;
};
struct VsockTarget {
    std::uint32_t cid = 2;
    std::uint32_t port = 8471;
    SourcePort source = SourcePort::any;
};
using Target = std::variant<UnixTarget, TlsTarget, VsockTarget>;

// A blocking client that opens one connection per request. Errors: unavailable (no listener),
// timed_out.
class Client {
  public:
    explicit Client(Target target);
    void set_bearer_token(std::string token) { token_ = std::move(token); }
    [[nodiscard]] Result<Response> send(Request const& request, std::chrono::seconds timeout) const;
    // Sends a request whose answer is a stream, and passes the body to `take` as it comes. Returns
    // when the server has ended it, or when `take` returns false. An answer that is not 2xx is
    // returned whole. timed_out: nothing came for `silence_max`.
    [[nodiscard]] Result<Response> follow(Request const& request, std::chrono::seconds silence_max,
                                          std::function<bool(std::string_view)> const& take) const;

  private:
    Target target_;
    std::string token_;
};

// Connects, checks what `target` says and returns the CA certificate, PEM, that has its ca_sha256.
// Errors: as a request's.
[[nodiscard]] Result<std::string> fetch_ca(TlsTarget const& target, std::chrono::seconds timeout);

// Returns the token of "Bearer <token>", an Authorization header's value. Empty if the value has
// another form, or if the token is longer than 256 bytes.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization);

// Creates a self-signed ECDSA P-256 certificate for `names`; key file 0600, never overwritten. An
// existing certificate is replaced if that is asked for, in one step.
enum class Existing { kept, replaced };
[[nodiscard]] Result<void> make_self_signed(std::string const& certificate_file,
                                            std::string const& key_file,
                                            std::vector<std::string> const& names,
                                            Existing existing = Existing::kept);
// The first certificate in a PEM file.
struct CertificateFacts {
    std::string fingerprint;         // as certificate_fingerprint()
    std::vector<std::string> names;  // DNS names and addresses
    Time expires_at{};
    bool made_here = false;                   // by make_self_signed()
    std::string public_key;                   // as public_key_of()
    std::vector<std::string> client_names{};  // as PeerCertificate::names
};
[[nodiscard]] Result<CertificateFacts> read_certificate(std::string const& certificate_file);
[[nodiscard]] Result<std::string> certificate_fingerprint(std::string const& certificate_file);
// SHA-256 of the certificate's SubjectPublicKeyInfo (DER), hex: a pin that survives a renewal with
// the same key.
[[nodiscard]] Result<std::string> public_key_of(std::string const& certificate_file);
// Checks that a server can serve with this certificate and key, unless they are empty, and trust
// these CAs.
[[nodiscard]] Result<void> check_certificate(TlsListen const& where);
// Accepts 1 to 255 visible ASCII characters: such a name can be printed, and is not mistaken for
// another.
[[nodiscard]] bool valid_certificate_name(std::string_view name);

[[nodiscard]] Request make_request(std::string method, std::string path);
[[nodiscard]] Request make_request(std::string method, std::string path,
                                   nlohmann::json const& body);
// Returns an answer of status 2xx; turns a problem document into the Error that it describes.
[[nodiscard]] Result<Response> success_of(Response response);

// Sent as "application/json".
[[nodiscard]] Response json_response(int status, nlohmann::json const& body);
// Sent as "application/problem+json" with instance and request_id.
[[nodiscard]] Response problem_response(Error const& error, std::string const& instance,
                                        std::string const& request_id);
[[nodiscard]] Response problem_response(Error const& error, Request const& request);
// Fails with invalid_request if the query has a parameter that is not in `known`.
[[nodiscard]] Result<void> check_query(Request const& request,
                                       std::vector<std::string> const& known);
// As problem_response(), with a status that HTTP itself requires: 408, 413, 417, 429, 431.
[[nodiscard]] Response problem_response_as(int status, Error const& error,
                                           std::string const& instance,
                                           std::string const& request_id);
// Returns 415 for a body whose Content-Type is not JSON; no route accepts anything else.
[[nodiscard]] std::optional<Response> refuse_other_media(Request const& request);

}  // namespace vfmgr::http
