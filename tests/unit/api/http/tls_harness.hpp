// SPDX-License-Identifier: Apache-2.0
// A server with TLS on the loopback device, and clients that do what a test specifies.
#pragma once

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>

#include "api/os/handle.hpp"
#include "tests/unit/api/http/harness.hpp"
#include "tests/unit/free_port.hpp"

namespace vfmgr::http {

struct TlsServer {
    explicit TlsServer(std::vector<std::string> const& names = {"localhost", "127.0.0.1"},
                       Limits limits = {}, Handler handler = echo)
        : server(limits) {
        auto const made = make_self_signed(certificate, key, names);
        EXPECT_TRUE(made) << made.error().detail;
        auto const listening = server.listen(TlsListen{.address = "127.0.0.1",
                                                       .port = port,
                                                       .certificate_file = certificate,
                                                       .key_file = key},
                                             std::move(handler));
        EXPECT_TRUE(listening) << listening.error().detail;
        server.start();
    }
    [[nodiscard]] Result<Response> ask(TlsTarget target) const {
        target.port = port;
        if (target.host.empty()) target.host = "127.0.0.1";
        return Client(target).send(get("/a"), std::chrono::seconds(20));
    }

    Folder folder;
    std::string certificate = folder.file("cert.pem");
    std::string key = folder.file("key.pem");
    std::uint16_t port = test::free_port();
    Server server;
};

// A TCP connection from a loopback address: each of 127.0.0.0/8 is a peer of its own.
inline FileDescriptor connected(std::uint16_t port, std::uint32_t from = INADDR_LOOPBACK) {
    FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval const deadline{.tv_sec = 20, .tv_usec = 0};
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
}

// true: the server has ended it, and sent nothing
inline bool ended(FileDescriptor const& fd) {
    char octet = 0;
    return ::recv(fd.get(), &octet, 1, 0) == 0;
}

// A TLS 1.3 session that sends and reads what the test specifies.
class RawTls {
  public:
    explicit RawTls(std::uint16_t port, std::string const& certificate = {},
                    std::string const& key = {})
        : fd_(connected(port)), context_(SSL_CTX_new(TLS_client_method())) {
        // OpenSSL writes an alert to a peer that has ended the connection.
        ::signal(SIGPIPE, SIG_IGN);
        if (!certificate.empty()) {
            EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()), 1);
            EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM),
                      1);
        }
        session_.reset(SSL_new(context_.get()));
        EXPECT_EQ(SSL_set_fd(session_.get(), fd_.get()), 1);
        EXPECT_EQ(SSL_connect(session_.get()), 1);
    }
    void send(std::string const& text) {
        auto const size = static_cast<int>(text.size());
        EXPECT_EQ(SSL_write(session_.get(), text.data(), size), size);
    }
    // Reads until the server closes the session.
    std::string everything() {
        std::string received;
        char buffer[4096];
        int size = 0;
        ERR_clear_error();  // SSL_get_error() also looks at those of other sessions
        while ((size = SSL_read(session_.get(), buffer, sizeof buffer)) > 0)
            received.append(buffer, static_cast<std::size_t>(size));
        EXPECT_EQ(SSL_get_error(session_.get(), size), SSL_ERROR_ZERO_RETURN) << "no close_notify";
        return received;
    }

    // true: the server has ended it without an answer
    [[nodiscard]] bool ended() {
        char octet = 0;
        return SSL_read(session_.get(), &octet, 1) <= 0;
    }

  private:
    FileDescriptor fd_;
    Handle<SSL_CTX, SSL_CTX_free> context_;
    Handle<SSL, SSL_free> session_;
};

}  // namespace vfmgr::http
