// SPDX-License-Identifier: Apache-2.0
// Many readers of one stream of server-sent events, for the bench `sse`. On this machine:
//   sse_readers PORT PATH TOKEN READERS
// Prints "ready" when each reader has its header. Then prints a line for each event that all
// readers have: its id; when the first reader, the one in the middle and the last one had it whole
// (microseconds since 1970); and the event as it was sent, with \n for its line ends. What is
// between is a tabulator. Ends with standard input. Fails as soon as a reader loses its connection,
// or gets anything but the event that the others get in that place.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Microseconds = std::int64_t;

// A daemon limits how many may connect before they show who they are.
constexpr std::size_t connecting_max = 8;

[[noreturn]] void fail(std::string const& why) {
    std::cerr << "sse_readers: " << why << std::endl;
    std::_Exit(1);
}

void check(ErrorCode failed, char const* what) {
    if (failed) fail(std::string(what) + ": " + failed.message());
}

Microseconds now() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * Microseconds{1'000'000} + time.tv_nsec / 1000;
}

// Returns the value of a field, or nothing.
std::string_view field(std::string_view event, std::string_view name) {
    for (auto rest = event; !rest.empty();) {
        auto const end = std::min(rest.find('\n'), rest.size() - 1);
        auto const line = rest.substr(0, end);
        if (line.starts_with(name)) return line.substr(name.size());
        rest.remove_prefix(end + 1);
    }
    return {};
}

// The events that came, in the order that all readers share.
class Arrivals {
  public:
    explicit Arrivals(std::size_t readers) : readers_(readers) {}

    // `place`: how many events this reader had before.
    void take(std::size_t place, std::string_view event, Microseconds at) {
        auto const index = place - printed_;
        if (index == under_way_.size()) {
            under_way_.push_back({std::string(event), {}});
            under_way_.back().at.reserve(readers_);
        }
        auto& arrival = under_way_.at(index);
        if (arrival.event != event)
            fail("a reader has " + std::string(event) + " where another has " + arrival.event);
        arrival.at.push_back(at);
        while (!under_way_.empty() && under_way_.front().at.size() == readers_) print();
    }

  private:
    struct Arrival {
        std::string event;
        std::vector<Microseconds> at;
    };

    void print() {
        auto& [event, at] = under_way_.front();
        std::cout << field(event, "id: ") << '\t' << at.front() << '\t' << at[at.size() / 2] << '\t'
                  << at.back() << '\t';
        for (char const c : event)
            if (c == '\n')
                std::cout << "\\n";
            else
                std::cout << c;
        std::cout << std::endl;
        under_way_.pop_front();
        ++printed_;
    }

    std::size_t const readers_;
    std::size_t printed_ = 0;
    std::deque<Arrival> under_way_;
};

class Reader : public std::enable_shared_from_this<Reader> {
  public:
    Reader(asio::io_context& io, asio::ssl::context& tls, Arrivals& arrivals)
        : stream_(io, tls), arrivals_(arrivals) {}

    // Calls `begun` when the header is there.
    void start(unsigned short port, std::string request, std::function<void()> begun) {
        request_ = std::move(request);
        begun_ = std::move(begun);
        stream_.lowest_layer().async_connect(
            {asio::ip::address_v4::loopback(), port}, [self = shared_from_this()](ErrorCode error) {
                check(error, "connect");
                self->stream_.async_handshake(asio::ssl::stream_base::client,
                                              [self](ErrorCode failed) {
                                                  check(failed, "TLS handshake");
                                                  self->ask();
                                              });
            });
    }

  private:
    void ask() {
        asio::async_write(stream_, asio::buffer(request_),
                          [self = shared_from_this()](ErrorCode failed, std::size_t) {
                              check(failed, "request");
                              self->read();
                          });
    }

    void read() {
        stream_.async_read_some(asio::buffer(part_),
                                [self = shared_from_this()](ErrorCode failed, std::size_t size) {
                                    auto const at = now();
                                    check(failed, "a stream ended");
                                    self->received_.append(self->part_.data(), size);
                                    self->take(at);
                                    self->read();
                                });
    }

    void take(Microseconds at) {
        if (!streams_ && !take_header()) return;
        while (take_chunk()) continue;
        for (std::size_t end = 0; (end = text_.find("\n\n")) != text_.npos;) {
            take_event(text_.substr(0, end + 2), at);
            text_.erase(0, end + 2);
        }
    }

    bool take_header() {
        auto const end = received_.find("\r\n\r\n");
        if (end == received_.npos) return false;
        if (!received_.starts_with("HTTP/1.1 200 ")) fail(received_);
        received_.erase(0, end + 4);
        streams_ = true;
        begun_();
        return true;
    }

    // False: there is no whole chunk.
    bool take_chunk() {
        auto const line = received_.find("\r\n");
        if (line == received_.npos) return false;
        std::size_t size = 0;
        auto const* const begin = received_.data();
        auto const parsed = std::from_chars(begin, begin + line, size, 16);
        if (parsed.ptr != begin + line || size == 0) fail("not a chunk: " + received_);
        if (received_.size() < line + 2 + size + 2) return false;
        text_.append(received_, line + 2, size);
        received_.erase(0, line + 2 + size + 2);
        return true;
    }

    // A heartbeat is a comment.
    void take_event(std::string_view event, Microseconds at) {
        if (field(event, "data: ").empty()) return;
        if (!field(event, "event: ").empty()) fail("unexpected: " + std::string(event));
        arrivals_.take(place_++, event, at);
    }

    asio::ssl::stream<asio::ip::tcp::socket> stream_;
    Arrivals& arrivals_;
    std::string request_;
    std::function<void()> begun_;
    std::array<char, 16 * 1024> part_{};
    std::string received_;
    std::string text_;  // without chunks
    bool streams_ = false;
    std::size_t place_ = 0;
};

class Readers {
  public:
    Readers(unsigned short port, std::string request, std::size_t count)
        : port_(port), request_(std::move(request)), count_(count), arrivals_(count) {
        for (std::size_t i = 0; i < std::min(count_, connecting_max); ++i) connect();
        input_.async_wait(asio::posix::stream_descriptor::wait_read,
                          [](ErrorCode) { std::_Exit(0); });
    }
    void run() { io_.run(); }

  private:
    void connect() {
        if (connected_ == count_) return;
        ++connected_;
        std::make_shared<Reader>(io_, tls_, arrivals_)->start(port_, request_, [this] {
            if (++begun_ == count_) std::cout << "ready" << std::endl;
            connect();
        });
    }

    unsigned short const port_;
    std::string const request_;
    std::size_t const count_;
    asio::io_context io_{1};
    asio::ssl::context tls_{asio::ssl::context::tlsv13_client};
    asio::posix::stream_descriptor input_{io_, ::dup(0)};
    Arrivals arrivals_;
    std::size_t connected_ = 0;
    std::size_t begun_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: sse_readers PORT PATH TOKEN READERS\n";
        return 2;
    }
    auto const request = std::string("GET ") + argv[2] +
                         " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + argv[3] +
                         "\r\nAccept: text/event-stream\r\n\r\n";
    Readers(static_cast<unsigned short>(std::stoi(argv[1])), request, std::stoul(argv[4])).run();
}
