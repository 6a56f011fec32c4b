// SPDX-License-Identifier: Apache-2.0
// A listening socket with its connections. Internal to api/http. Lives on the io thread; owned by
// the server. Each listener has its own limits, so guests on vsock can't take an admin's place on
// the unix socket.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>

#include "api/http/connection.hpp"
#include "api/http/http.hpp"
#include "api/http/io_thread.hpp"
#include "api/http/listening.hpp"
#include "api/http/places.hpp"

namespace vfmgr::http {

using TurnedAway = std::function<void(Peer const&, Error const&)>;

class Listener {
  public:
    Listener(boost::asio::io_context& io, std::shared_ptr<Mailbox> mailbox, Limits const& limits,
             ListeningSocket socket, SourcePort source, SslContext tls, Handler handler,
             TurnedAway const& turned_away, std::function<void()> on_empty, OnBug const& on_bug)
        : io_(io),
          mailbox_(std::move(mailbox)),
          on_bug_(on_bug),
          limits_(limits),
          file_(std::move(socket.file)),
          descriptor_(io, socket.fd.release()),
          retry_(io),
          source_(source),
          tls_(std::move(tls)),
          handler_(std::move(handler)),
          turned_away_(turned_away),
          on_empty_(std::move(on_empty)) {}

    void accept_next();
    void close();
    void stop_accepting();
    void finish(Finish when);
    void cut(Which const& which);
    void renew(SSL_CTX* tls);
    void limit(Limits const& limits) { limits_ = limits; }
    [[nodiscard]] bool empty() const { return connections_.empty(); }

  private:
    static constexpr std::size_t known_addresses_max = 1024;
    enum class Accepted { yes, no_resources };
    Accepted accept_one();
    void admit(FileDescriptor fd);
    [[nodiscard]] Result<void> make_room(std::string const& peer,
                                         std::optional<std::uint64_t> besides = {});
    [[nodiscard]] Result<void> make_room_for_stranger(std::string const& address, AddressIs is);
    [[nodiscard]] Result<void> take_place(std::uint64_t number, std::string const& name);
    void give_way(std::uint64_t number, std::string why);
    void forget(std::uint64_t number);
    [[nodiscard]] AddressIs address_is(std::string const& address) const {
        return known_.contains(address) ? AddressIs::known : AddressIs::unknown;
    }
    void start(std::uint64_t number, FileDescriptor fd, Peer const& peer, std::string const& key);

    boost::asio::io_context& io_;
    std::shared_ptr<Mailbox> mailbox_;
    OnBug const& on_bug_;
    Limits limits_;
    Held file_;
    boost::asio::posix::stream_descriptor descriptor_;
    boost::asio::steady_timer retry_;
    SourcePort const source_;
    SslContext tls_;
    Handler handler_;
    TurnedAway const& turned_away_;
    KnownPeers known_{known_addresses_max};
    struct Kept {
        std::shared_ptr<Connection> connection;
        Peer peer;
        std::string address;  // stranger_key() with TLS, otherwise peer_key()
        std::string shares;   // the key of its places: the address, then a name
    };
    Strangers strangers_;                        // with TLS
    std::map<std::uint64_t, Kept> connections_;  // by number, in order of arrival
    std::uint64_t so_far_ = 0;
    std::function<void()> on_empty_;  // called when the last connection has ended
};

}  // namespace vfmgr::http
