from acoustic.recurrence.loop_node import Loop as Loop
