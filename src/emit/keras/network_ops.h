#pragma once

// The functions of the op table for the ops of particular networks.

#include "emit/keras/printer.h"

namespace bakeoff::emit::keras {

void lrn(Printer& p, const ir::Node& node);
void position_embedding(Printer& p, const ir::Node& node);
void attention(Printer& p, const ir::Node& node);
void gru(Printer& p, const ir::Node& node);
void lstm(Printer& p, const ir::Node& node);

}  // namespace bakeoff::emit::keras
