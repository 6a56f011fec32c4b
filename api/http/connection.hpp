// SPDX-License-Identifier: Apache-2.0
// One accepted connection: reads requests one after the other, calls the handler, writes answers,
// each under its deadline. Internal to api/http. Lives on the io thread; owned by its listener and
// by its own pending operations.
#pragma once

#include <functional>
#include <memory>

#include "api/http/http.hpp"
#include "api/http/mailbox.hpp"
#include "api/http/tls.hpp"
#include "api/types/file_descriptor.hpp"

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
// For another: where it is owed an answer, or none has begun, it is told `refusal`, a whole one.
void give_way(Connection& connection, std::string const& refusal);
struct Standing {
    bool idle = false;      // it waits for what the peer sends or takes, and owes it no answer
    bool stranger = false;  // it came from the network, and no handler has known who it is
};
[[nodiscard]] Standing standing(Connection const& connection);
// At once where nobody has asked anything; otherwise after the handler's answer, or with one made
// here for a handler that has not answered.
enum class Finish { when_answered, now };
void finish(Connection& connection, Finish when);
[[nodiscard]] Peer const& peer(Connection const& connection);

}  // namespace vfmgr::http
