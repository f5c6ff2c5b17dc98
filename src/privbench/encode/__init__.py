"""Values to small integer codes and back; keys to row positions and entity numbers."""
