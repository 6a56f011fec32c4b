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

class Connection;  // connection.cpp

struct ConnectionSetup {
    boost::asio::io_context& io;
    std::shared_ptr<Mailbox> mailbox;
    FileDescriptor fd;
    Peer peer;
    SSL_CTX* tls = nullptr;  // null: plain
    Limits limits;
    Handler const& handler;  // outlives the connection
    std::function<void(Connection const&)> on_end;
};

[[nodiscard]] std::shared_ptr<Connection> make_connection(ConnectionSetup setup);
void start(Connection& connection);
void close(Connection& connection);
// Ends the connection to make room for another. `refusal` is a whole response; the peer gets it if
// an answer is due, or if none has begun.
void give_way(Connection& connection, std::string const& refusal);
struct Standing {
    bool idle = false;      // waits for the peer to send or take data, and owes no answer
    bool stranger = false;  // came over the network and has not authenticated
};
[[nodiscard]] Standing standing(Connection const& connection);
// Ends the connection: at once when no request is open, otherwise after the handler's answer
// (when_answered), or with a 503 in its place (now).
enum class Finish { when_answered, now };
void finish(Connection& connection, Finish when);
[[nodiscard]] Peer const& peer(Connection const& connection);

}  // namespace vfmgr::http
