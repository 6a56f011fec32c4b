// SPDX-License-Identifier: Apache-2.0
// A server on a unix socket in a folder of its own, and a client that sends arbitrary octets.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/os/descriptor.hpp"
#include "tests/unit/counter.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::http {

using Folder = test::TemporaryFolder;
using test::Counter;

// Echoes "GET /path?key=value body" to the client, and knows every client.
inline void echo(Request request, Respond respond) {
    if (auto const place = make_known(request, {"client"}); !place)
        return respond(problem_response(place.error(), request));
    Response response;
    response.body = request.method + " " + request.path;
    for (auto const& [name, value] : request.query) response.body += " " + name + "=" + value;
    if (!request.body.empty()) response.body += " " + request.body;
    response.content_type = "text/plain";
    respond(std::move(response));
}

struct TestServer {
    explicit TestServer(
        Handler handler = echo, Limits limits = {}, OnBug on_bug = [](std::string const&) {})
        : server(limits, std::move(on_bug)) {
        auto const listening =
            server.listen(UnixListen{.path = path, .group = {}, .mode = 0600}, std::move(handler));
        EXPECT_TRUE(listening) << listening.error().detail;
        server.start();
    }
    [[nodiscard]] Client client() const { return Client(UnixTarget{path}); }

    Folder folder;
    std::string path = folder.file("socket");
    Server server;
};

struct Reply {
    int status = 0;
    std::string head;
    std::string body;
};

class RawClient {
  public:
    explicit RawClient(std::string const& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        fd_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
            << std::strerror(errno);
    }
    // false: the server no longer listens
    bool send(std::string_view text, int flags = 0) {
        while (!text.empty()) {
            auto const sent = ::send(fd_.get(), text.data(), text.size(), flags | MSG_NOSIGNAL);
            if (sent <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    void half_close() { ::shutdown(fd_.get(), SHUT_WR); }
    void close() { fd_.reset(); }

    // nullopt: the connection ended before a whole reply.
    std::optional<Reply> reply() {
        while (received_.find("\r\n\r\n") == std::string::npos)
            if (!more()) return std::nullopt;
        Reply reply;
        auto const end = received_.find("\r\n\r\n");
        reply.head = received_.substr(0, end + 2);
        received_.erase(0, end + 4);
        std::from_chars(reply.head.data() + 9, reply.head.data() + 12, reply.status);
        std::size_t length = 0;
        if (auto const at = reply.head.find("Content-Length: "); at != std::string::npos)
            std::from_chars(reply.head.data() + at + 16, reply.head.data() + reply.head.size(),
                            length);
        while (received_.size() < length)
            if (!more()) return std::nullopt;
        reply.body = received_.substr(0, length);
        received_.erase(0, length);
        return reply;
    }
    // Reads until the server ends the connection.
    std::string everything() {
        while (more()) continue;
        return std::exchange(received_, {});
    }
    // true: the server ended the connection and sent nothing more before that
    bool ended() {
        if (!received_.empty()) return false;
        return !more() && !timed_out_;
    }
    [[nodiscard]] bool readable_within(std::chrono::milliseconds time) {
        pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
        return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
    }
    // Checks without reading.
    [[nodiscard]] bool hung_up_within(std::chrono::milliseconds time) {
        pollfd waiting{.fd = fd_.get(), .events = POLLRDHUP, .revents = 0};
        return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
    }

  private:
    bool more() {
        pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
        timed_out_ = ::poll(&waiting, 1, 20'000) == 0;
        if (timed_out_) return false;
        char buffer[4096];
        auto const size = ::recv(fd_.get(), buffer, sizeof buffer, 0);
        if (size <= 0) return false;
        received_.append(buffer, static_cast<std::size_t>(size));
        return true;
    }

    FileDescriptor fd_;
    std::string received_;
    bool timed_out_ = false;
};

inline std::size_t open_descriptors() {
    auto const all = std::filesystem::directory_iterator("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

inline Request get(std::string path) {
    Request request;
    request.method = "GET";
    request.path = std::move(path);
    return request;
}

}  // namespace vfmgr::http
