// SPDX-License-Identifier: Apache-2.0
// Writes a stream as the body of one answer. Asks for the next part when the last one was written,
// and holds no other. Internal to api/http. Lives on the io thread; owned by its connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.hpp"

namespace vfmgr::http {

class Streaming {
  public:
    // What the connection does for it. The parts stay as they are until `written` is called.
    struct Seams {
        std::function<void(std::vector<std::string_view> const& parts,
                           std::function<void()> written)>
            write;
        std::function<void(std::chrono::milliseconds)> arm;  // expired() is called then
        std::function<void()> end;                           // all is written
    };
    enum class Coding { chunked, until_close };  // HTTP/1.1, HTTP/1.0
    // `patience`: how long a peer may take for one part.
    Streaming(std::shared_ptr<Stream const> stream, Coding coding,
              std::chrono::milliseconds patience, Seams seams);

    // `wake` calls woken(), unless the connection has gone.
    void begin(std::function<void()> wake);
    void woken();
    // False: the peer was too slow. The connection closes then.
    [[nodiscard]] bool expired();
    // Ends it, if a part is being written then after that.
    void finish();

  private:
    enum class Phase { waiting, writing, ending };
    void flow(Stream::Due due);
    void write();
    void end();

    std::shared_ptr<Stream const> stream_;
    Coding const coding_;
    std::chrono::milliseconds const patience_;
    Seams const seams_;
    Phase phase_ = Phase::writing;  // until begin()
    bool finishing_ = false;
    std::vector<Frame> frames_;  // that are being written
    std::string size_line_;      // of their chunk
};

}  // namespace vfmgr::http
