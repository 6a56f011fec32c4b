// SPDX-License-Identifier: Apache-2.0
// Prints events one by one, as they come. One thread.
#pragma once

#include <string>

#include "service/cli/session.hpp"

namespace vfmgr {

// Writes events in the format that the user chose, each on a line of its own.
class EventPrinter {
  public:
    explicit EventPrinter(Options const& options) : options_(options) {}
    // Returns the text for an event that the API sent as this JSON. One that this version can't
    // read is shown as it came.
    [[nodiscard]] std::string text_of(std::string const& json);

  private:
    Options const& options_;
    bool headers_ = true;  // still to be printed
};

}  // namespace vfmgr
