// SPDX-License-Identifier: Apache-2.0
// One accepted connection. It reads requests one after the other, calls the handler and writes the
// answers, each under its deadline. Internal to api/http. Lives on the io thread; owned by its
// listener and by its own pending operations.
#pragma once

#include <functional>
#include <memory>

#include "api/http/http.hpp"
#include "api/http/mailbox.hpp"
#include "api/http/tls.hpp"
#include "api/os/descriptor.hpp"

namespace boost::asio {
class io_context;
}

namespace vfmgr::http {

// How a connection ends: with the handler's answer, or with a 503 in its place.
enum class Finish { when_answered, now };

class Connection {
  public:
    virtual ~Connection() = default;
    virtual void start() = 0;
    virtual void close() = 0;
    // Ends it to make room for another. `refusal` is a whole response; the peer gets it if an
    // answer is due, or if none has begun.
    virtual void give_way(std::string const& refusal) = 0;
    virtual void cut(Which const& which) = 0;
    // Ends it if `trust` does not accept its client's certificate.
    virtual void verify_again(SSL_CTX* trust) = 0;
    // Ends it as `when` says; at once if no request is open.
    virtual void finish(Finish when) = 0;
    struct Standing {
        bool idle = false;      // waits for the peer to send or take data, and owes no answer
        bool stranger = false;  // came over the network and has not authenticated
        bool streams = false;   // its answer is a stream
    };
    [[nodiscard]] virtual Standing standing() const = 0;
};

struct ConnectionSetup {
    boost::asio::io_context& io;
    std::shared_ptr<Mailbox> mailbox;
    FileDescriptor fd;
    Peer peer;
    SSL_CTX* tls = nullptr;  // null: plain
    Limits limits;
    Handler const& handler;  // outlives the connection
    std::function<void()> on_end;
    // A client certificate does not verify.
    std::function<void(Peer const&, Error const&)> on_refused;
    // A handler knows the peer by this name.
    std::function<Result<void>(std::string const& name)> take_place;
};

// Asio and Beast stay in connection.cpp.
[[nodiscard]] std::shared_ptr<Connection> make_connection(ConnectionSetup setup);

}  // namespace vfmgr::http
