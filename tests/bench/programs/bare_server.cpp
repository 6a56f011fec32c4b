// SPDX-License-Identifier: Apache-2.0
// The peer of the benchmarks of the API: the minimum that serves over TLS with Beast. It has one
// thread like vfmgrd's, asks nobody who he is, and looks nothing up. On this machine:
//   bare_server PORT CERTIFICATE KEY
// GET /N answers with N bytes, the same for everybody. GET /events answers with a stream: what
// comes on standard input as one line, a frame with \n for its line ends, goes to every reader.
// Prints "ready" when it listens.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <charconv>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;
using Frame = std::shared_ptr<std::string const>;

constexpr std::chrono::seconds patience{30};
constexpr auto request_id = "0123456789abcdef0123456789abcdef";

class Session;

struct Served {
    std::map<std::size_t, std::string> bodies;
    std::set<std::shared_ptr<Session>> readers;

    std::string& body_of(std::size_t bytes) {
        return bodies.try_emplace(bytes, std::string(bytes, 'x')).first->second;
    }
};

class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(asio::ip::tcp::socket socket, asio::ssl::context& tls, Served& served)
        : stream_(std::move(socket), tls), served_(served) {}

    void start() {
        beast::get_lowest_layer(stream_).expires_after(patience);
        stream_.async_handshake(asio::ssl::stream_base::server,
                                [self = shared_from_this()](ErrorCode failed) {
                                    if (!failed) self->read();
                                });
    }

    void send(Frame const& frame) {
        frames_.push_back(frame);
        if (frames_.size() == 1) write_frame();
    }

  private:
    void read() {
        request_ = {};
        beast::get_lowest_layer(stream_).expires_after(patience);
        http::async_read(stream_, buffer_, request_,
                         [self = shared_from_this()](ErrorCode failed, std::size_t) {
                             if (!failed) self->answer();
                         });
    }

    void answer() {
        auto const path = request_.target().substr(1);
        if (path == "events") return begin_stream();
        std::size_t bytes = 0;
        std::from_chars(path.data(), path.data() + path.size(), bytes);
        auto& body = served_.body_of(bytes);
        response_.emplace(http::status::ok, request_.version());
        response_->set("Cache-Control", "no-store");
        response_->set("X-Content-Type-Options", "nosniff");
        response_->set("X-Request-Id", request_id);
        response_->set("Content-Type", "application/json");
        response_->body() = {body.data(), body.size()};
        response_->content_length(body.size());
        response_->keep_alive(request_.keep_alive());
        beast::get_lowest_layer(stream_).expires_after(patience);
        http::async_write(stream_, *response_,
                          [self = shared_from_this()](ErrorCode failed, std::size_t) {
                              if (!failed && self->response_->keep_alive()) self->read();
                          });
    }

    void begin_stream() {
        beast::get_lowest_layer(stream_).expires_never();
        header_ =
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\n\r\n";
        asio::async_write(stream_, asio::buffer(header_),
                          [self = shared_from_this()](ErrorCode failed, std::size_t) {
                              if (!failed) self->served_.readers.insert(self);
                          });
    }

    void write_frame() {
        asio::async_write(stream_, http::make_chunk(asio::buffer(*frames_.front())),
                          [self = shared_from_this()](ErrorCode failed, std::size_t) {
                              self->frames_.pop_front();
                              if (failed)
                                  self->served_.readers.erase(self);
                              else if (!self->frames_.empty())
                                  self->write_frame();
                          });
    }

    beast::ssl_stream<beast::tcp_stream> stream_;
    Served& served_;
    beast::flat_buffer buffer_;
    http::request<http::string_body> request_;
    std::optional<http::response<http::span_body<char>>> response_;
    std::string header_;
    std::deque<Frame> frames_;
};

class Server {
  public:
    Server(asio::io_context& io, unsigned short port, char const* certificate, char const* key)
        : acceptor_(io, {asio::ip::address_v4::loopback(), port}), input_(io, ::dup(0)) {
        tls_.use_certificate_chain_file(certificate);
        tls_.use_private_key_file(key, asio::ssl::context::pem);
        accept();
        read_line();
    }

  private:
    void accept() {
        acceptor_.async_accept([this](ErrorCode failed, asio::ip::tcp::socket socket) {
            if (!failed) {
                socket.set_option(asio::ip::tcp::no_delay(true));
                std::make_shared<Session>(std::move(socket), tls_, served_)->start();
            }
            accept();
        });
    }

    // Ends with standard input.
    void read_line() {
        asio::async_read_until(input_, asio::dynamic_buffer(line_), '\n',
                               [this](ErrorCode failed, std::size_t size) {
                                   if (failed) std::exit(0);
                                   publish(line_.substr(0, size - 1));
                                   line_.erase(0, size);
                                   read_line();
                               });
    }

    void publish(std::string text) {
        for (std::size_t at = 0; (at = text.find("\\n", at)) != text.npos; ++at)
            text.replace(at, 2, "\n");
        auto const frame = std::make_shared<std::string const>(std::move(text));
        for (auto const& reader : std::set(served_.readers)) reader->send(frame);
    }

    asio::ssl::context tls_{asio::ssl::context::tlsv13_server};
    asio::ip::tcp::acceptor acceptor_;
    asio::posix::stream_descriptor input_;
    std::string line_;
    Served served_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: bare_server PORT CERTIFICATE KEY\n";
        return 2;
    }
    asio::io_context io{1};
    Server const server(io, static_cast<unsigned short>(std::stoi(argv[1])), argv[2], argv[3]);
    std::cout << "ready" << std::endl;
    io.run();
}
