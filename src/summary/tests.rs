//! Sums agree with the rows that they are made from, and memory stays bounded.
