// SPDX-License-Identifier: Apache-2.0
// Passes a request on to another server and its answer back: what of them goes on, and a stream
// with bounded memory. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "api/http/client_pool.hpp"
#include "api/http/http.hpp"

namespace vfmgr::http {

// Returns the request to send: the method, the query and the body as they are, `path`, and of the
// headers only those that belong to the request itself, such as If-Match. Not passed on: what
// belongs to the connection (RFC 9110, 7.6.1), what says who the client is, and every header that
// is not known here: another server could trust it.
[[nodiscard]] Request forwarded(Request const& received, std::string path);

// Returns the answer to give, with all headers but those of the connection, of the message's
// framing and of the session with that server. `below`: where that server's /v1 is here; a Location
// in its API is changed to that, such as "/v1/operations/7" to "/v1/hosts/a/operations/7". Empty:
// stays.
[[nodiscard]] Response forwarded_answer(Response answer, std::string const& below = {});

struct PassedStream {
    TlsTarget target{};
    Request request{};  // as forwarded() returned it
    std::string received_path{};
    std::string below{};                   // as forwarded_answer() takes it
    std::chrono::seconds silence_max{45};  // three times a server's heartbeat
    // Server::io_post() of the server that answers.
    std::function<void(std::function<void()>)> post{};
};
// Answers with the stream that `target` sends, or with whatever else it answers. While the client
// does not take what has come, no more than 80 KiB are held and nothing more is read. When the
// client has gone, the stream ends; when the stream ends or breaks off, so does the answer.
void forward_stream(ClientPool& pool, PassedStream stream, Respond respond);

}  // namespace vfmgr::http
